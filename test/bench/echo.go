package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dockgate/dockgate/test/bench/raw"
)

// said is what the echo is told.
const said = "the quick brown fox jumps over the lazy dog"

// echoCall returns the params of a call of the echo of a server behind the
// gateway; of the demo itself if server is empty.
func echoCall(server string) []byte {
	return fmt.Appendf(nil, `{"name":%q,"arguments":{"text":%q}}`, exposed(server, "echo"), said)
}

// modernEcho is echoCall in the era without sessions.
func modernEcho(server string) []byte {
	const meta = `{"io.modelcontextprotocol/protocolVersion":"2026-07-28","io.modelcontextprotocol/clientCapabilities":{},` +
		`"io.modelcontextprotocol/clientInfo":{"name":"dockgate-bench","version":"1"}}`
	return fmt.Appendf(nil, `{"name":%q,"arguments":{"text":%q},"_meta":%s}`, exposed(server, "echo"), said, meta)
}

// sizedCall returns the params of a call for a result of a size.
func sizedCall(server string, size int) []byte {
	return fmt.Appendf(nil, `{"name":%q,"arguments":{"size":%d}}`, exposed(server, "bytes"), size)
}

func exposed(server, tool string) string {
	if server == "" {
		return tool
	}
	return server + "__" + tool
}

// checkEcho makes one call and looks whether it does what it should.
func checkEcho(c *raw.Conversation, params []byte) error {
	result, err := c.Call(params)
	if err != nil {
		return err
	}
	if !bytes.Contains(result, []byte(said)) {
		return fmt.Errorf("the echo answered %.300s", result)
	}
	return nil
}

// count returns how many tools of servers a list has; the gateway's own have
// no prefix.
func count(list json.RawMessage) (int, error) {
	var listed struct {
		Tools []struct {
			Name string `json:"name"`
		} `json:"tools"`
	}
	if err := json.Unmarshal(list, &listed); err != nil {
		return 0, err
	}
	servers := 0
	for _, t := range listed.Tools {
		if strings.Contains(t.Name, "__") {
			servers++
		}
	}
	return servers, nil
}
