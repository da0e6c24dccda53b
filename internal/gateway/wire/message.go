package wire

import (
	"encoding/json"
	"errors"
	"fmt"

	sdkjsonrpc "github.com/modelcontextprotocol/go-sdk/jsonrpc"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// fromWire makes a message of the SDK's. The params go beside it as they
// came: the extra part of a request is the only one that the SDK passes on.
func fromWire(m jsonrpc.Message) (sdkjsonrpc.Message, error) {
	id, err := ID(m.ID)
	if err != nil {
		return nil, err
	}
	if m.Kind() == jsonrpc.Response {
		response := &sdkjsonrpc.Response{ID: id, Result: CarryAnswer(m.Result)}
		if m.Error != nil {
			response.Error = &sdkjsonrpc.Error{Code: m.Error.Code, Message: m.Error.Message, Data: m.Error.Data}
		}
		return response, nil
	}
	return &sdkjsonrpc.Request{
		ID: id, Method: m.Method, Params: m.Params,
		Extra: Beside(m.Params),
	}, nil
}

// ID returns an id as the SDK has it, or why it has none.
func ID(raw json.RawMessage) (sdkjsonrpc.ID, error) {
	switch {
	case raw == nil || string(raw) == "null":
		return sdkjsonrpc.ID{}, nil
	case raw[0] == '"':
		var text string
		if err := json.Unmarshal(raw, &text); err != nil {
			return sdkjsonrpc.ID{}, err
		}
		return sdkjsonrpc.MakeID(text)
	}
	number, ok := jsonrpc.Integer(raw)
	if !ok || number > 1<<53 || number < -1<<53 {
		return sdkjsonrpc.ID{}, fmt.Errorf("id %s is not a whole number below 2^53, nor a text", raw)
	}
	return sdkjsonrpc.MakeID(float64(number))
}

// toWire makes one of our messages of the SDK's.
func toWire(message sdkjsonrpc.Message) (jsonrpc.Message, error) {
	switch m := message.(type) {
	case *sdkjsonrpc.Request:
		wire := jsonrpc.Message{Method: m.Method, Params: m.Params}
		if !m.ID.IsValid() {
			return wire, nil
		}
		id, err := json.Marshal(m.ID.Raw())
		wire.ID = id
		return wire, err
	case *sdkjsonrpc.Response:
		id, err := json.Marshal(m.ID.Raw())
		wire := jsonrpc.Message{ID: id, Result: m.Result}
		if m.Error != nil {
			wire.Error = FromSDK(m.Error)
		}
		return wire, err
	default:
		return jsonrpc.Message{}, fmt.Errorf("unknown message %T", message)
	}
}

// FromSDK returns an error as it is answered. It keeps the code of a wrapped error, as the SDK does. Without one
// it is an internal error.
func FromSDK(err error) *jsonrpc.Error {
	var wire *sdkjsonrpc.Error
	switch {
	case errors.As(err, &wire) && err == error(wire): //nolint:errorlint // whether it is wrapped is the question
		return &jsonrpc.Error{Code: wire.Code, Message: wire.Message, Data: wire.Data}
	case wire != nil:
		return &jsonrpc.Error{Code: wire.Code, Message: err.Error()}
	default:
		return &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
	}
}

// ToSDK returns a server's own error so that the SDK sends it as it is. One
// of no code is an internal error; the SDK would give it the code zero.
func ToSDK(err error) error {
	var answer *jsonrpc.Error
	var wire *sdkjsonrpc.Error
	switch {
	case err == nil:
		return nil
	case errors.As(err, &answer):
		return &sdkjsonrpc.Error{Code: answer.Code, Message: answer.Message, Data: answer.Data}
	case errors.As(err, &wire): // the SDK keeps its code
		return err
	}
	return &sdkjsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}
}
