// Command server is the MCP server of the benchmark: its tool "bytes" returns
// a text of a given size, and spends next to no time on it, so that what a
// large result costs on its way is not hidden by the cost of making it.
package main

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

const (
	info = `{"protocolVersion":"2025-11-25","capabilities":{"tools":{}},"serverInfo":{"name":"bytes","version":"1.0.0"}}`

	tools = `{"tools":[{"name":"bytes","description":"Returns a text of a given size.",` +
		`"inputSchema":{"type":"object","properties":{"size":{"type":"integer","minimum":0}},"required":["size"]}}]}`

	maxSize = 15 << 20
)

func main() {
	if err := serve(os.Stdin, os.Stdout); err != nil {
		fmt.Fprintln(os.Stderr, "bytes:", err)
		os.Exit(1)
	}
}

func serve(in io.Reader, stdout io.Writer) error {
	requests := jsonrpc.NewReader(in, jsonrpc.ReaderOptions{})
	// Large texts pass it by, in few writes and without a copy.
	out := bufio.NewWriterSize(stdout, 64<<10)
	var known texts
	for {
		m, err := requests.Read()
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return err
		case m.Kind() != jsonrpc.Request:
			continue
		}
		var result string
		switch m.Method {
		case "initialize":
			result = info
		case "ping":
			result = "{}"
		case "tools/list":
			result = tools
		case "tools/call":
			result, err = known.call(m.Params)
		default:
			err = &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "no method " + m.Method}
		}
		member := "result"
		if err != nil {
			member, result = "error", fmt.Sprintf(`{"code":%d,"message":%q}`, codeOf(err), err.Error())
		}
		for _, part := range []string{`{"jsonrpc":"2.0","id":`, string(m.ID), `,"`, member, `":`, result, "}\n"} {
			if _, err := out.WriteString(part); err != nil {
				return err
			}
		}
		if err := out.Flush(); err != nil {
			return err
		}
	}
}

func codeOf(err error) int64 {
	var known *jsonrpc.Error
	if errors.As(err, &known) {
		return known.Code
	}
	return jsonrpc.CodeInvalidParams
}

// texts are the results that were made, by the size of their text.
type texts map[int]string

func (t *texts) call(params json.RawMessage) (string, error) {
	size, ok := jsonrpc.Integer(jsonrpc.Lookup(jsonrpc.Lookup(params, "arguments"), "size"))
	if !ok || size < 0 || size > maxSize {
		return "", fmt.Errorf("size: want a number from 0 to %d", maxSize)
	}
	if *t == nil {
		*t = make(texts)
	}
	if (*t)[int(size)] == "" {
		(*t)[int(size)] = `{"content":[{"type":"text","text":` + strconv.Quote(text(int(size))) + `}]}`
	}
	return (*t)[int(size)], nil
}

// text returns lines of words, as a file would have them.
func text(size int) string {
	const line = "The quick brown fox jumps over the lazy dog, and 1,234 others \"look on\" at it.\n"
	return strings.Repeat(line, size/len(line)+1)[:size]
}
