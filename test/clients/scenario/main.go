// Command scenario is the client in a scenario of the MCP conformance suite
// that is about clients. It has the gateway between itself and the scenario's
// server, so that what the suite sees and judges is the gateway's own client:
//
//	conformance client --command "scenario DOCKGATE FOLDER" --requirements 2026-07-28
//
// The suite adds the server's URL. It begins all scenarios at once; those with
// the same folder take turns, two at a time, since a machine that is busy makes
// servers seem silent. What the gateway does not do at all is not tried. What it plays is the part that the suite
// describes for each scenario, as a person with an MCP client in front of the
// gateway would play it: they add the server, log in where that is asked for,
// and use what is listed.
package main

import (
	"bufio"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"hash/crc32"
	"io"
	"net/http"
	"net/url"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"time"

	"github.com/gofrs/flock"
	"github.com/modelcontextprotocol/go-sdk/jsonrpc"
	"github.com/modelcontextprotocol/go-sdk/mcp"
)

// server is the name that the scenario's server has in the gateway.
const server = "thing"

// Bounds of one scenario.
const (
	// turns is how many scenarios run at a time.
	turns = 2
	// logins is how often a person logs in before they give up.
	logins = 3
	// farewell is how long the gateway may take to end.
	farewell = 10 * time.Second
)

func main() {
	if len(os.Args) != 4 {
		fmt.Fprintln(os.Stderr, "usage: scenario DOCKGATE FOLDER URL")
		os.Exit(2)
	}
	p := play{
		gateway:  os.Args[1],
		folder:   os.Args[2],
		url:      os.Args[3],
		scenario: os.Getenv("MCP_CONFORMANCE_SCENARIO"),
		version:  os.Getenv("MCP_CONFORMANCE_PROTOCOL_VERSION"),
	}
	err := json.Unmarshal([]byte(or(os.Getenv("MCP_CONFORMANCE_CONTEXT"), "{}")), &p.context)
	if err == nil {
		err = p.run(context.Background())
	}
	if err != nil {
		fmt.Fprintf(os.Stderr, "scenario %s: %v\n", p.scenario, err)
		os.Exit(1)
	}
}

func or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

// A play is one scenario.
type play struct {
	gateway, folder   string
	url               string
	scenario, version string
	context           struct {
		ClientID     string `json:"client_id"`
		ClientSecret string `json:"client_secret"`
		ToolCalls    []call `json:"toolCalls"`
	}

	dir     string
	flags   []string // of every command
	session *mcp.ClientSession
	logins  int
}

// A call is one of a tool.
type call struct {
	Name      string         `json:"name"`
	Arguments map[string]any `json:"arguments"`
}

// beyond reports whether a scenario is about an extension that the gateway does
// not have: ways to get a token without a person.
func beyond(scenario string) bool {
	switch scenario {
	case "auth/client-credentials-jwt", "auth/client-credentials-basic", "auth/enterprise-managed-authorization",
		"auth/dpop", "auth/dpop-nonce", "auth/wif-jwt-bearer":
		return true
	}
	return false
}

func (p *play) run(ctx context.Context) (err error) {
	if beyond(p.scenario) {
		return errors.New("the gateway does not have this extension")
	}
	turn := flock.New(filepath.Join(p.folder, fmt.Sprintf("turn%d", crc32.ChecksumIEEE([]byte(p.scenario))%turns)))
	if err := turn.Lock(); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, turn.Close()) }()
	if p.dir, err = os.MkdirTemp("", "scenario-"); err != nil {
		return err
	}
	defer func() { err = errors.Join(err, os.RemoveAll(p.dir)) }()
	catalog := filepath.Join(p.dir, "catalog.yaml")
	entry := fmt.Sprintf("version: 1\nservers:\n  %s: {remote: {url: %q, transport: streamable-http}}\n", server, p.url)
	if err := os.WriteFile(catalog, []byte(entry), 0o600); err != nil {
		return err
	}
	p.flags = []string{"--state", filepath.Join(p.dir, "state"), "--catalog", catalog}
	command := p.command(ctx, "serve", "--approve", "all", "--expose", "dynamic,active", "--prefix", "none")
	command.Stderr = os.Stderr
	client := mcp.NewClient(&mcp.Implementation{Name: "scenario", Version: "1"}, &mcp.ClientOptions{
		Capabilities:       &mcp.ClientCapabilities{},
		ElicitationHandler: p.answer,
	})
	p.session, err = client.Connect(ctx, &mcp.CommandTransport{Command: command, TerminateDuration: farewell}, &mcp.ClientSessionOptions{ProtocolVersion: p.version})
	if err != nil {
		return fmt.Errorf("connect to the gateway: %w", err)
	}
	defer func() { err = errors.Join(err, p.session.Close()) }()
	return p.act(ctx)
}

func (p *play) command(ctx context.Context, args ...string) *exec.Cmd {
	command := exec.CommandContext(ctx, p.gateway, append(p.flags, args...)...)
	// A keychain is asked for by nobody here.
	command.Env = append(os.Environ(), "DOCKGATE_KEYCHAIN=off")
	return command
}

// answer accepts what is asked, and leaves to the defaults what has some.
func (p *play) answer(_ context.Context, _ *mcp.ElicitRequest) (*mcp.ElicitResult, error) {
	content := map[string]any{}
	if p.scenario != "elicitation-sep1034-client-defaults" {
		content["confirmed"] = true
	}
	return &mcp.ElicitResult{Action: "accept", Content: content}, nil
}

// act does what the scenario is about.
func (p *play) act(ctx context.Context) error {
	if err := p.use(ctx, call{"mcp_add", map[string]any{"name": server}}); err != nil {
		return err
	}
	listed, err := p.tools(ctx)
	if err != nil {
		return err
	}
	switch p.scenario {
	case "tools_call":
		return p.use(ctx, call{"add_numbers", map[string]any{"a": 5, "b": 3}})
	case "http-standard-headers":
		return p.useEverything(ctx, listed)
	case "http-custom-headers":
		return p.useEach(ctx, p.context.ToolCalls)
	case "http-invalid-tool-headers":
		names, err := p.offered(ctx)
		if err != nil {
			return err
		}
		return p.useEach(ctx, callsOf(names, map[string]any{"region": "us-west1"}))
	case "json-schema-2020-12-preservation":
		for _, t := range listed {
			if t.Name == "json_schema_2020_12_tool" {
				return p.use(ctx, call{"json_schema_echo", map[string]any{"schema": t.InputSchema}})
			}
		}
		return errors.New("the tool with the schema is not listed")
	case "json-schema-ref-no-deref", "request-metadata", "initialize":
		return nil // it is enough that the server was asked for its tools
	default:
		var names []string
		for _, t := range listed {
			names = append(names, t.Name)
		}
		return p.useEach(ctx, callsOf(names, map[string]any{}))
	}
}

// tools are the server's tools as the gateway lists them.
func (p *play) tools(ctx context.Context) ([]*mcp.Tool, error) {
	var tools []*mcp.Tool
	for t, err := range p.session.Tools(ctx, nil) {
		if err != nil {
			return nil, fmt.Errorf("list the tools: %w", err)
		}
		if !strings.HasPrefix(t.Name, "mcp_") {
			tools = append(tools, t)
		}
	}
	return tools, nil
}

// offered are the names of the server's tools as the gateway knows them, with
// those that the client in front of it would not list.
func (p *play) offered(ctx context.Context) ([]string, error) {
	out, err := p.command(ctx, "tools", server, "--all", "--json").Output()
	if err != nil {
		return nil, fmt.Errorf("dockgate tools: %w", err)
	}
	var list struct {
		Tools []struct{ Name string }
	}
	if err := json.Unmarshal(out, &list); err != nil {
		return nil, err
	}
	var names []string
	for _, t := range list.Tools {
		names = append(names, t.Name)
	}
	return names, nil
}

func callsOf(tools []string, arguments map[string]any) []call {
	var calls []call
	for _, name := range tools {
		calls = append(calls, call{name, arguments})
	}
	return calls
}

// useEach makes calls one after the other, whatever comes of them.
func (p *play) useEach(ctx context.Context, calls []call) error {
	var errs []error
	for _, c := range calls {
		errs = append(errs, p.use(ctx, c))
	}
	return errors.Join(errs...)
}

// useEverything uses one of each kind that the server offers.
func (p *play) useEverything(ctx context.Context, tools []*mcp.Tool) error {
	if len(tools) > 0 {
		if err := p.use(ctx, call{tools[0].Name, map[string]any{}}); err != nil {
			return err
		}
	}
	resources, err := p.session.ListResources(ctx, nil)
	if err == nil && len(resources.Resources) > 0 {
		_, err = p.session.ReadResource(ctx, &mcp.ReadResourceParams{URI: resources.Resources[0].URI})
	}
	if err != nil {
		return fmt.Errorf("resources: %w", err)
	}
	prompts, err := p.session.ListPrompts(ctx, nil)
	if err == nil && len(prompts.Prompts) > 0 {
		_, err = p.session.GetPrompt(ctx, &mcp.GetPromptParams{Name: prompts.Prompts[0].Name})
	}
	if err != nil {
		return fmt.Errorf("prompts: %w", err)
	}
	return nil
}

// use makes a call, and once more after each login that it is refused for.
func (p *play) use(ctx context.Context, c call) error {
	for {
		result, err := p.session.CallTool(ctx, &mcp.CallToolParams{Name: c.Name, Arguments: c.Arguments})
		if !wantsLogin(result, err) {
			return err
		}
		if p.logins++; p.logins > logins {
			return fmt.Errorf("call %s: still refused after %d logins", c.Name, logins)
		}
		if err := p.login(ctx); err != nil {
			return err
		}
	}
}

// wantsLogin reports whether an answer tells a person to log in.
func wantsLogin(result *mcp.CallToolResult, err error) bool {
	const code = "LOGIN_REQUIRED"
	var refusal *jsonrpc.Error
	if errors.As(err, &refusal) {
		return strings.Contains(string(refusal.Data), code)
	}
	if err != nil || !result.IsError {
		return false
	}
	said, err := json.Marshal(result)
	return err == nil && strings.Contains(string(said), code)
}

// login runs dockgate login, and is the browser of the person who does.
func (p *play) login(ctx context.Context) (err error) {
	args, err := p.client([]string{"login", server, "--no-browser"})
	if err != nil {
		return err
	}
	command := p.command(ctx, args...)
	said, err := command.StderrPipe()
	if err != nil {
		return err
	}
	if err := command.Start(); err != nil {
		return err
	}
	defer func() {
		if ended := command.Wait(); ended != nil {
			err = errors.Join(err, fmt.Errorf("dockgate login: %w", ended))
		}
	}()
	lines := bufio.NewScanner(said)
	for lines.Scan() {
		fmt.Fprintln(os.Stderr, lines.Text())
		address, err := url.Parse(strings.TrimSpace(lines.Text()))
		if err == nil && strings.HasPrefix(address.Scheme, "http") {
			if err := consent(ctx, address.String()); err != nil {
				return errors.Join(err, command.Process.Kill())
			}
		}
	}
	return lines.Err()
}

// client adds to the arguments of a login what the issuer knows of the gateway.
func (p *play) client(args []string) ([]string, error) {
	switch {
	case p.scenario == "auth/basic-cimd":
		return append(args, "--client-id", "https://conformance-test.local/client-metadata.json"), nil
	case p.context.ClientID != "":
		file := filepath.Join(p.dir, "secret")
		err := os.WriteFile(file, []byte(p.context.ClientSecret), 0o600)
		return append(args, "--client-id", p.context.ClientID, "--client-secret", file), err
	}
	return args, nil
}

// consent opens the page of an issuer. Those of the suite ask nothing, and send
// the browser back at once.
func consent(ctx context.Context, address string) error {
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return err
	}
	answer, err := http.DefaultClient.Do(request)
	if err != nil {
		return err
	}
	_, err = io.Copy(io.Discard, answer.Body)
	return errors.Join(err, answer.Body.Close())
}
