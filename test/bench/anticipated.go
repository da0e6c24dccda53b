package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"time"

	"github.com/dockgate/dockgate/test/bench/raw"
	"github.com/dockgate/dockgate/test/bench/sample"
)

// measureAnticipated measures the first call of a server that was dormant when
// its tool's details were read, beside the same call of one that runs. Reading
// them starts the server; in between a model thinks, here until it is ready.
func measureAnticipated(ctx context.Context, b *bench) (err error) {
	s, err := b.thirty(ctx)
	if err != nil {
		return err
	}
	gateway, err := b.connect(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gateway.close()) }()
	if err := checkEcho(gateway.Conversation, executed(echoServer)); err != nil {
		return gateway.explain(err)
	}
	figures, err := interleave(ctx, b.rounds(10), []arm{
		{"anticipated", func() (float64, error) {
			if err := b.none(ctx, "dockgate.server="+coming, "dockgate.state="+s.id); err != nil {
				return 0, err
			}
			if err := b.anticipate(ctx, gateway.Conversation); err != nil {
				return 0, gateway.explain(err)
			}
			return timed(gateway, coming)
		}},
		{"warm", func() (float64, error) { return timed(gateway, echoServer) }},
	})
	if err != nil {
		return err
	}
	return errors.Join(
		b.add("anticipated.call_ms", figures["anticipated"]),
		b.add("anticipated.warm_ms", figures["warm"]),
		b.add("anticipated.over_warm_ms", sample.Differences(figures["anticipated"], figures["warm"])),
	)
}

// executed returns the params of a call of a server's echo by the tool that
// calls all others.
func executed(server string) []byte {
	return fmt.Appendf(nil, `{"name":"execute_tool","arguments":{"server":%q,"tool":"echo","arguments":{"text":%q}}}`, server, said)
}

func timed(gateway *process, server string) (float64, error) {
	defer quiet()()
	began := time.Now()
	err := checkEcho(gateway.Conversation, executed(server))
	took := milliseconds(time.Since(began))
	if err != nil {
		return 0, gateway.explain(err)
	}
	return took, nil
}

// anticipate reads the details of a tool and waits until its server is ready.
func (b *bench) anticipate(ctx context.Context, c *raw.Conversation) error {
	details := fmt.Appendf(nil, `{"name":"get_tool_details","arguments":{"server":%q,"tool":"echo"}}`, coming)
	return eventually(ctx, 20*time.Millisecond, func() (bool, error) {
		result, err := c.Call([]byte(`{"name":"list_mcp_servers","arguments":{}}`))
		if err != nil {
			return false, err
		}
		var listed struct {
			StructuredContent struct {
				Servers []struct{ Name, State string }
			}
		}
		if err := json.Unmarshal(result, &listed); err != nil {
			return false, err
		}
		for _, server := range listed.StructuredContent.Servers {
			if server.Name != coming {
				continue
			}
			if server.State == "dormant" { // also if it was just about to stop
				_, err = c.Call(details)
			}
			return server.State == "ready", err
		}
		return false, fmt.Errorf("%s is not listed: %.300s", coming, result)
	})
}
