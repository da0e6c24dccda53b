package era

import (
	"encoding/json"
	"errors"
	"fmt"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// Codes of errors that only one generation has (MCP 2026-07-28, changelog).
const (
	codeNoResource        = -32002 // legacy
	codeURLRequired       = -32042 // legacy
	codeMissingCapability = -32021 // modern
)

// ErrorForModern returns a server's error for a client without sessions: codes
// that such a client must not get are replaced. Others come back as they are.
func ErrorForModern(err error) error {
	var answer *jsonrpc.Error
	if !errors.As(err, &answer) {
		return err
	}
	switch answer.Code {
	case codeNoResource:
		return &jsonrpc.Error{Code: jsonrpc.CodeInvalidParams, Message: answer.Message, Data: answer.Data}
	case codeURLRequired:
		return &jsonrpc.Error{
			Code: codeMissingCapability, Message: answer.Message,
			Data: json.RawMessage(`{"requiredCapabilities":{"elicitation":{"url":{}}}}`),
		}
	}
	return err
}

// Addresses returns what a legacy server wants the user to open before it
// takes a call, as inputs for a client without sessions; nil for another error.
func (a Abilities) Addresses(server string, err error) []Input {
	if !a.URL {
		return nil
	}
	var inputs []Input
	for _, wanted := range elicitations(err) {
		params, err := a.Question(server, Elicit, wanted)
		if err == nil {
			params, err = ForRounds(Elicit, params)
		}
		if err != nil || text(wanted, "mode") != modeURL {
			return nil
		}
		inputs = append(inputs, Input{Key: fmt.Sprintf("url%d", len(inputs)+1), Method: Elicit, Params: params})
	}
	return inputs
}

// Accepted reports whether the user accepted everything that was asked.
func Accepted(answers json.RawMessage) bool {
	accepted := false
	for m, err := range jsonrpc.Members(answers) {
		if err != nil || text(m.Value, "action") != "accept" {
			return false
		}
		accepted = true
	}
	return accepted
}

// AddressIDs returns the ids of the addresses that a legacy server wants the
// user to open before it takes a call; nil for another error.
func AddressIDs(err error) []string {
	var ids []string
	for _, wanted := range elicitations(err) {
		if id := AddressID(wanted); id != "" {
			ids = append(ids, id)
		}
	}
	return ids
}

// elicitations returns the params of what a legacy server wants to ask before
// it takes a call; nil for another error, and for a list that is none.
func elicitations(err error) []json.RawMessage {
	var answer *jsonrpc.Error
	if !errors.As(err, &answer) || answer.Code != codeURLRequired {
		return nil
	}
	var all []json.RawMessage
	for wanted, err := range jsonrpc.Elements(jsonrpc.Lookup(answer.Data, "elicitations")) {
		if err != nil {
			return nil
		}
		all = append(all, wanted)
	}
	return all
}
