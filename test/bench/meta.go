package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"os"
)

// The size at which the meta-tools are measured.
const (
	metaServers = 1000
	metaTools   = 10
	metaCalls   = 20
)

// measureMeta measures the tools by which an agent finds and uses all others,
// through the endpoint, with 1,000 servers and 10,000 tools: the list of
// servers, a search, the details of a tool, and a call of a server that runs.
func measureMeta(ctx context.Context, b *bench) (err error) {
	s, err := b.state(ctx, "servers-1000", append(wideEntries(metaServers, metaTools), entry{name: echoServer, image: demoImage}))
	if err != nil {
		return err
	}
	// The servers have fewer tools than they are said to: none is to be started.
	if err := os.WriteFile(s.config(), []byte("anticipate: false\n"), 0o600); err != nil {
		return err
	}
	gateway, err := b.connect(ctx, s)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, gateway.close()) }()
	const list = `{"name":"list_mcp_servers","arguments":{}}`
	listed, err := gateway.Call([]byte(list))
	if err == nil && !bytes.Contains(listed, []byte(`"name":"wide-999"`)) {
		err = fmt.Errorf("list_mcp_servers answered %.300s", listed)
	}
	if err != nil {
		return gateway.explain(err)
	}
	asked := 0
	ask := func(name string, params func(n int) string, want string) arm {
		return arm{name, func() (float64, error) {
			return medianOf(metaCalls, func() error {
				asked++
				result, err := gateway.Call([]byte(params(asked)))
				if err == nil && !bytes.Contains(result, []byte(want)) {
					err = fmt.Errorf("it answered %.300s, want %s in it", result, want)
				}
				return err
			})
		}}
	}
	arms := []arm{
		{"list", func() (float64, error) {
			return medianOf(metaCalls, func() error {
				_, err := gateway.Drain([]byte(list)) // it is long
				return err
			})
		}},
		ask("search", func(n int) string {
			return fmt.Sprintf(`{"name":"search_tools","arguments":{"query":"change record of kind %d of wide-%03d"}}`, n%metaTools, n%metaServers)
		}, `"relevance":`),
		ask("details", func(n int) string {
			return fmt.Sprintf(`{"name":"get_tool_details","arguments":{"server":"wide-%03d","tool":"update_record_%03d"}}`, n%metaServers, n%metaTools)
		}, `"parameters":`),
		ask("execute", func(int) string { return string(executed(echoServer)) }, said),
	}
	if _, err := interleave(ctx, 1, arms); err != nil { // warms up
		return gateway.explain(err)
	}
	figures, err := interleave(ctx, b.pairs, arms)
	if err != nil {
		return gateway.explain(err)
	}
	inMilliseconds := func(name string) []float64 {
		for i := range figures[name] {
			figures[name][i] /= 1000
		}
		return figures[name]
	}
	return errors.Join(
		b.add("meta.list_ms", inMilliseconds("list")),
		b.add("meta.search_ms", inMilliseconds("search")),
		b.add("meta.details_ms", inMilliseconds("details")),
		b.add("meta.execute_us", figures["execute"]),
	)
}
