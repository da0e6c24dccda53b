package era

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// The requests that servers make of clients.
const (
	Elicit  = "elicitation/create"
	Sample  = "sampling/createMessage"
	Roots   = "roots/list"
	modeURL = "url"
)

// Abilities are what a client has declared that it can be asked.
type Abilities struct {
	// Form and URL are the modes of elicitation.
	Form, URL bool
	// Sampling is sampling, and Tools sampling with tools.
	Sampling, Tools bool
	Roots           bool
}

// AbilitiesOf reads a client's capabilities.
func AbilitiesOf(capabilities json.RawMessage) Abilities {
	var a Abilities
	for m, err := range jsonrpc.Members(capabilities) {
		if err != nil {
			return Abilities{}
		}
		declared := m.Value[0] == '{'
		switch string(m.Name) {
		case "elicitation":
			a.Form, a.URL = declared && has(m.Value, "form"), declared && has(m.Value, modeURL)
			if declared && !a.URL { // before modes there were forms alone
				a.Form = true
			}
		case "sampling":
			a.Sampling, a.Tools = declared, declared && has(m.Value, "tools")
		case "roots":
			a.Roots = declared
		}
	}
	return a
}

// Capabilities are those of a client with the abilities, in one way of writing
// them.
func (a Abilities) Capabilities() string {
	var declared []string
	declare := func(can bool, text string) {
		if can {
			declared = append(declared, text)
		}
	}
	declare(a.Roots, `"roots":{"listChanged":true}`)
	declare(a.Sampling && !a.Tools, `"sampling":{}`)
	declare(a.Sampling && a.Tools, `"sampling":{"tools":{}}`)
	declare(a.Form && !a.URL, `"elicitation":{"form":{}}`)
	declare(!a.Form && a.URL, `"elicitation":{"url":{}}`)
	declare(a.Form && a.URL, `"elicitation":{"form":{},"url":{}}`)
	return "{" + strings.Join(declared, ",") + "}"
}

// Forwarded returns the capabilities of a client as a server behind a gateway
// is told of them: without extensions and tasks, which are not carried.
func Forwarded(capabilities json.RawMessage) json.RawMessage {
	if len(capabilities) == 0 || capabilities[0] != '{' {
		return json.RawMessage("{}")
	}
	forwarded, err := without(capabilities, named("extensions", "tasks"))
	if err != nil {
		return json.RawMessage("{}")
	}
	return forwarded
}

// has reports whether a member is there and an object.
func has(object json.RawMessage, name string) bool {
	value := jsonrpc.Lookup(object, name)
	return len(value) > 0 && value[0] == '{'
}

// Any reports whether a client can be asked anything.
func (a Abilities) Any() bool { return a != Abilities{} }

// Question returns the params of a server's request as its client gets them,
// or a [*jsonrpc.Error] if it cannot be asked that. A person sees which server
// asks, because a client knows only the gateway; an address that they are to
// open is one of the web. Nothing else of the params changes, but that a token
// for progress, which belongs to the server's own connection, is gone.
func (a Abilities) Question(server, method string, params json.RawMessage) (json.RawMessage, error) {
	if err := a.refuse(method, params); err != nil {
		return nil, err
	}
	if len(params) == 0 {
		params = json.RawMessage("{}")
	}
	if Meta(params, MetaProgress) != nil {
		meta, err := without(jsonrpc.Lookup(params, "_meta"), named(MetaProgress))
		if err != nil {
			return nil, err
		}
		if params, err = jsonrpc.With(params, "_meta", meta); err != nil {
			return nil, err
		}
	}
	if method != Elicit {
		return params, nil
	}
	return signed(server, params)
}

// signed puts the server's name before the message of an elicitation.
func signed(server string, params json.RawMessage) (json.RawMessage, error) {
	message := jsonrpc.Lookup(params, "message")
	if len(message) == 0 || message[0] != '"' {
		return nil, invalid("an elicitation without a message")
	}
	name, err := json.Marshal(fmt.Sprintf("%s asks: ", server))
	if err != nil {
		return nil, err
	}
	whole := append(name[:len(name)-1:len(name)-1], message[1:]...)
	if params, err = jsonrpc.With(params, "message", whole); err != nil {
		return nil, err
	}
	// What was looked at is what the client reads: none of these twice.
	for _, name := range []string{"mode", "url"} {
		if value := jsonrpc.Lookup(params, name); value != nil {
			if params, err = jsonrpc.With(params, name, value); err != nil {
				return nil, err
			}
		}
	}
	return params, nil
}

func (a Abilities) refuse(method string, params json.RawMessage) error {
	switch method {
	case Elicit:
		return a.refuseElicitation(params)
	case Sample:
		switch {
		case !a.Sampling:
			return cannot("sampling")
		case !a.Tools && (jsonrpc.Lookup(params, "tools") != nil || jsonrpc.Lookup(params, "toolChoice") != nil):
			return invalid("the client has not declared sampling with tools")
		}
		return nil
	case Roots:
		if !a.Roots {
			return cannot("roots")
		}
		return nil
	default:
		return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "method not found: " + method}
	}
}

func (a Abilities) refuseElicitation(params json.RawMessage) error {
	if !a.Form && !a.URL {
		return cannot("elicitation")
	}
	switch mode := text(params, "mode"); mode {
	case modeURL:
		if !a.URL {
			return invalid("the client has not declared elicitation by URL")
		}
		return webOnly(text(params, "url"))
	case "form", "": // before modes there were forms alone
		if !a.Form {
			return invalid("the client has not declared elicitation by form")
		}
		return nil
	default:
		return invalid("unknown mode of elicitation: " + mode)
	}
}

// webOnly refuses addresses behind which something else than a web page may
// open: files, programs, scripts.
func webOnly(address string) error {
	parsed, err := url.Parse(address)
	if err != nil || parsed.Scheme != "https" && parsed.Scheme != "http" || parsed.Host == "" {
		return invalid("the address of an elicitation is not one of the web")
	}
	return nil
}

// text returns a member that is a text, decoded, or "".
func text(object json.RawMessage, name string) string {
	var decoded string
	if json.Unmarshal(jsonrpc.Lookup(object, name), &decoded) != nil {
		return ""
	}
	return decoded
}

func cannot(what string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeMethodNotFound, Message: "the client does not support " + what}
}

func invalid(problem string) error {
	return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: problem}
}

// ForSessions returns the params of a question for a client with sessions, to
// which an address that is to be opened has an id: the one given, unless the
// server has set one.
func ForSessions(method string, params json.RawMessage, id string) (json.RawMessage, error) {
	if method != Elicit || text(params, "mode") != modeURL || jsonrpc.Lookup(params, elicitationID) != nil {
		return params, nil
	}
	quoted, err := json.Marshal(id)
	if err != nil {
		return nil, err
	}
	return jsonrpc.With(params, elicitationID, quoted)
}

// ForRounds returns the params of a question for a client without sessions,
// which knows no ids of addresses.
func ForRounds(method string, params json.RawMessage) (json.RawMessage, error) {
	if method != Elicit {
		return params, nil
	}
	return without(params, named(elicitationID))
}

// AddressID returns the id of an address that is to be opened, or "".
func AddressID(params json.RawMessage) string { return text(params, elicitationID) }

const elicitationID = "elicitationId"
