package endpoint

import (
	"encoding/json"
	"net/http"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// Error codes of MCP 2026-07-28 (basic/transports, "Server validation").
const (
	codeHeaderMismatch     = -32020
	codeMissingCapability  = -32021
	codeUnsupportedVersion = -32022
)

// A refusal is an answer without the protocol: a status, and a JSON-RPC error
// that says the same to whoever reads bodies only.
type refusal struct {
	status int
	code   int64
	reason string
	// id is that of the request; nil if there is none or it could not be read.
	id json.RawMessage
	// data is that of the error; nil if it has none.
	data json.RawMessage
}

func (r refusal) write(w http.ResponseWriter) {
	id := r.id
	if id == nil {
		id = json.RawMessage("null")
	}
	body, err := jsonrpc.Message{ID: id, Error: &jsonrpc.Error{Code: r.code, Message: r.reason, Data: r.data}}.Append(nil)
	if err != nil { // an id that was read can be written, and so can data
		body = []byte(`{"jsonrpc":"2.0","id":null,"error":{"code":-32600,"message":"bad request"}}`)
	}
	header := w.Header()
	header.Set("Content-Type", "application/json")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Del("Content-Length")
	w.WriteHeader(r.status)
	_, _ = w.Write(append(body, '\n')) // who asked has left
}

// forbidden is a request that must not come any further, whatever it is.
func forbidden(reason string) *refusal {
	return &refusal{status: http.StatusForbidden, code: jsonrpc.CodeInvalidRequest, reason: reason}
}

func badRequest(code int64, reason string) *refusal {
	return &refusal{status: http.StatusBadRequest, code: code, reason: reason}
}

// busy is a refusal that holds for a while only.
func busy(w http.ResponseWriter, status int, seconds, reason string) *refusal {
	w.Header().Set("Retry-After", seconds)
	return &refusal{status: status, code: jsonrpc.CodeInternalError, reason: reason}
}
