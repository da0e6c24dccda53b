package era

import (
	"bytes"
	"encoding/json"
	"fmt"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// An Input is what a modern server wants to know before it has a result (MCP
// 2026-07-28, basic/patterns/mrtr).
type Input struct {
	Key    string
	Method string
	Params json.RawMessage
}

// Inputs returns what a modern server's result asks for, in its order, and the
// state that it wants back, nil if none; asks is false for a result that is
// complete.
func Inputs(result json.RawMessage) (inputs []Input, state json.RawMessage, asks bool, err error) {
	var requests json.RawMessage
	for m, err := range jsonrpc.Members(result) {
		if err != nil {
			return nil, nil, false, err
		}
		switch string(m.Name) {
		case resultType:
			asks = string(m.Value) == inputRequired
		case "inputRequests":
			requests = m.Value
		case "requestState":
			state = m.Value
		}
	}
	if !asks {
		return nil, nil, false, nil
	}
	if requests == nil || string(requests) == "null" {
		return nil, state, true, nil
	}
	for m, err := range jsonrpc.Members(requests) {
		if err != nil {
			return nil, nil, false, invalid("inputRequests: " + err.Error())
		}
		inputs = append(inputs, Input{
			Key: string(m.Name), Method: text(m.Value, "method"), Params: jsonrpc.Lookup(m.Value, "params"),
		})
	}
	return inputs, state, true, nil
}

// Unfinished returns the result of a server with sessions. Such a server asks in
// requests of its own, but those that were written for servers without know
// that for the first round only, and end the next with what they would ask: that
// is said of it, as servers without sessions say it.
func Unfinished(result json.RawMessage) (json.RawMessage, error) {
	if !bytes.Contains(result, []byte(`"inputRequests"`)) {
		return result, nil
	}
	var asked bool
	for m, err := range jsonrpc.Members(result) {
		if err != nil {
			return nil, err
		}
		switch string(m.Name) {
		case resultType:
			return result, nil
		case "inputRequests":
			asked = isAsked(m.Value)
		}
	}
	if !asked {
		return result, nil
	}
	return jsonrpc.With(result, resultType, json.RawMessage(inputRequired))
}

// isAsked reports whether a value is what a client can be asked, by name.
func isAsked(requests json.RawMessage) bool {
	found := false
	for m, err := range jsonrpc.Members(requests) {
		if err != nil {
			return false
		}
		switch text(m.Value, "method") {
		case Elicit, Sample, Roots:
			found = true
		default:
			return false
		}
	}
	return found
}

// Retry returns the params of a call with the answers that a server asked for,
// by their keys, and its state.
func Retry(params json.RawMessage, answers map[string]json.RawMessage, state json.RawMessage) (json.RawMessage, error) {
	params, err := First(params)
	if err != nil {
		return nil, err
	}
	if len(answers) > 0 {
		all, err := marshal(answers)
		if err != nil {
			return nil, err
		}
		if params, err = jsonrpc.With(params, "inputResponses", all); err != nil {
			return nil, err
		}
	}
	if state == nil {
		return params, nil
	}
	return jsonrpc.With(params, "requestState", state)
}

// First returns the params of a call without answers and state, as it was sent
// at first.
func First(params json.RawMessage) (json.RawMessage, error) {
	if len(params) == 0 {
		return json.RawMessage("{}"), nil
	}
	return without(params, named("inputResponses", "requestState"))
}

// InputRequired returns the result that asks a client for input.
func InputRequired(inputs []Input, state string) (json.RawMessage, error) {
	type request struct {
		Method string          `json:"method"`
		Params json.RawMessage `json:"params"`
	}
	requests := make(map[string]request, len(inputs))
	for _, input := range inputs {
		requests[input.Key] = request{input.Method, input.Params}
	}
	quoted, err := marshal(requests)
	if err != nil {
		return nil, err
	}
	handle, err := json.Marshal(state)
	if err != nil {
		return nil, err
	}
	return fmt.Appendf(nil, `{"resultType":%s,"inputRequests":%s,"requestState":%s}`, inputRequired, quoted, handle), nil
}

// marshal encodes a value whose raw parts are not to be escaped anew.
func marshal(value any) (json.RawMessage, error) {
	var buffer bytes.Buffer
	encoder := json.NewEncoder(&buffer)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return nil, err
	}
	return bytes.TrimRight(buffer.Bytes(), "\n"), nil
}

// Relayed returns a modern server's result that asks for input, as a client
// without sessions gets it: the questions as [Abilities.Question] has them,
// and the state, if there is one, as wrap returns it.
func (a Abilities) Relayed(server string, result json.RawMessage, wrap func(state string) string) (json.RawMessage, error) {
	inputs, state, _, err := Inputs(result)
	if err != nil {
		return nil, err
	}
	requests := jsonrpc.Lookup(result, "inputRequests")
	for _, input := range inputs {
		params, err := a.Question(server, input.Method, input.Params)
		if err != nil {
			return nil, err
		}
		request, err := jsonrpc.With(jsonrpc.Lookup(requests, input.Key), "params", params)
		if err != nil {
			return nil, err
		}
		if requests, err = jsonrpc.With(requests, input.Key, request); err != nil {
			return nil, err
		}
	}
	if len(inputs) > 0 {
		if result, err = jsonrpc.With(result, "inputRequests", requests); err != nil {
			return nil, err
		}
	}
	if state == nil {
		return result, nil
	}
	var own string
	if err := json.Unmarshal(state, &own); err != nil {
		return nil, invalid("requestState of the server is not a text")
	}
	quoted, err := marshal(wrap(own))
	if err != nil {
		return nil, err
	}
	return jsonrpc.With(result, "requestState", quoted)
}
