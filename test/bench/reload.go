package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
)

// measureReload measures how long a gateway with 10,000 tools takes from the
// reading of a changed configuration until every list is another one, and how
// often a gateway that was started anew knows what servers offer without
// asking them.
func measureReload(ctx context.Context, b *bench) error {
	wide, err := b.tenThousand(ctx)
	if err != nil {
		return err
	}
	took, err := b.reloads(ctx, wide, b.rounds(10))
	if err != nil {
		return err
	}
	thirty, err := b.thirty(ctx)
	if err != nil {
		return err
	}
	rate, err := b.hitRate(ctx, thirty)
	if err != nil {
		return err
	}
	return errors.Join(b.add("reload.ms", took), b.add("cache.hit_rate", []float64{rate}))
}

// reloads changes the configuration of a gateway again and again: what is
// disabled then is listed no more, which is checked.
func (b *bench) reloads(ctx context.Context, s *state, rounds int) (took []float64, err error) {
	gateway, err := b.connect(ctx, s)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, gateway.close()) }()
	if _, err := gateway.Request("tools/list", nil); err != nil {
		return nil, gateway.explain(err)
	}
	for round := range rounds {
		name := fmt.Sprintf("update_record_%03d", round)
		config := fmt.Sprintf("discovery: {toolRules: [{pattern: [%s], enabled: false}]}\n", name)
		if err := os.WriteFile(s.config(), []byte(config), 0o600); err != nil {
			return nil, err
		}
		var answer struct {
			Gateways []struct {
				Took    float64 `json:"took_ms"`
				Problem string  `json:"problem"`
			} `json:"gateways"`
		}
		if err := b.ask(ctx, s, &answer, "config", "reload"); err != nil {
			return nil, gateway.explain(err)
		}
		if len(answer.Gateways) != 1 || answer.Gateways[0].Problem != "" {
			return nil, fmt.Errorf("config reload: %+v, want one gateway without a problem", answer)
		}
		took = append(took, answer.Gateways[0].Took)
		list, err := gateway.Request("tools/list", nil)
		if err != nil {
			return nil, gateway.explain(err)
		}
		if found, err := count(list); err != nil || found != s.tools-100 {
			return nil, errors.Join(err, fmt.Errorf("%d tools are listed after the reload, want %d", found, s.tools-100))
		}
	}
	return took, os.WriteFile(s.config(), nil, 0o600)
}

// hitRate does what an agent does, again and again, with servers that have run
// before, in a gateway that has just been started.
func (b *bench) hitRate(ctx context.Context, s *state) (float64, error) {
	var shown struct {
		Cache struct {
			Hits   float64 `json:"hits"`
			Misses float64 `json:"misses"`
		} `json:"cache"`
	}
	if err := b.ask(ctx, s, &shown, "config", "show"); err != nil {
		return 0, err
	}
	before := shown.Cache
	if err := b.discover(ctx, s); err != nil {
		return 0, err
	}
	if err := b.ask(ctx, s, &shown, "config", "show"); err != nil {
		return 0, err
	}
	hits, misses := shown.Cache.Hits-before.Hits, shown.Cache.Misses-before.Misses
	if hits+misses == 0 {
		return 0, errors.New("nothing was asked of the cache")
	}
	return hits / (hits + misses), nil
}

func (b *bench) discover(ctx context.Context, s *state) (err error) {
	gateway, err := b.connect(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gateway.close()) }()
	for range b.rounds(10) {
		for _, params := range []string{
			`{"name":"list_mcp_servers","arguments":{}}`,
			`{"name":"search_tools","arguments":{"query":"echo a text"}}`,
			`{"name":"get_tool_details","arguments":{"server":"` + echoServer + `","tool":"echo"}}`,
			`{"name":"execute_tool","arguments":{"server":"` + echoServer + `","tool":"echo","arguments":{"text":"x"}}}`,
		} {
			if _, err := gateway.Call([]byte(params)); err != nil {
				return gateway.explain(err)
			}
		}
	}
	return nil
}

// config is the configuration file of a state's gateways.
func (s *state) config() string { return filepath.Join(filepath.Dir(s.dir), "config.yaml") }

// ask runs a command on a state folder, and reads its answer.
func (w *world) ask(ctx context.Context, s *state, into any, args ...string) error {
	args = append(args, "--json", "--state", s.dir, "--config", s.config(), "--catalog", s.catalog)
	command := exec.CommandContext(ctx, w.gateway, args...) //nolint:gosec // it is what is measured
	command.Env = environment()
	out, err := command.Output()
	var failed *exec.ExitError
	if errors.As(err, &failed) {
		err = fmt.Errorf("%w: %s", err, failed.Stderr)
	}
	if err != nil {
		return fmt.Errorf("%v: %w", args[:2], err)
	}
	return json.Unmarshal(out, into)
}
