package endpoint

import (
	"encoding/json"
	"errors"
	"net/http"
	"strconv"
	"strings"

	"github.com/dockgate/dockgate/internal/gateway"
	"github.com/dockgate/dockgate/internal/jsonrpc"
)

const (
	methodHeader    = "Mcp-Method"
	lastEventHeader = "Last-Event-Id"
)

// enter makes a request one of its session.
func (e *Endpoint) enter(r *http.Request, visit *gateway.Visit) *refusal {
	if err := e.Gateway.Enter(visit, r.Header.Get(sessionHeader)); err != nil {
		return badMessage(err)
	}
	return nil
}

func badMessage(err error) *refusal {
	var problem *jsonrpc.Error
	if errors.As(err, &problem) {
		return badRequest(problem.Code, problem.Message)
	}
	return badRequest(jsonrpc.CodeInvalidRequest, err.Error())
}

// direct reports whether a request has the headers that it must have, so that
// it can be answered without the SDK. It may say no to one that has; the SDK
// looks again.
func direct(r *http.Request, visit *gateway.Visit, era era) bool {
	messages, header := visit.Messages(), r.Header
	if r.Method != http.MethodPost || visit.Batch() || len(messages) != 1 ||
		!isJSON(header.Get("Content-Type")) || !acceptsBoth(header.Values("Accept")) || header.Values(lastEventHeader) != nil {
		return false
	}
	version, m := header.Get(versionHeader), messages[0]
	if era == legacy {
		return visit.Entered() && isLegacyVersion(version)
	}
	return version == modernVersion && header.Get(methodHeader) == m.Method &&
		header.Get(nameHeader) != "" && header.Get(nameHeader) == nameIn(m.Params)
}

// nameIn is the name of what a request is for.
func nameIn(params json.RawMessage) (name string) {
	if json.Unmarshal(jsonrpc.Lookup(params, "name"), &name) != nil {
		return ""
	}
	return name
}

// isLegacyVersion reports whether a version is one of the legacy era that the
// SDK knows; none is 2025-03-26 (MCP 2025-11-25: basic/transports, "Protocol
// Version Header").
func isLegacyVersion(version string) bool {
	switch version {
	case "", "2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25":
		return true
	}
	return false
}

func isJSON(kind string) bool {
	switch kind {
	case "application/json", "application/json; charset=utf-8", "application/json;charset=utf-8", "application/json; charset=UTF-8":
		return true
	}
	return false
}

// acceptsBoth reports whether a client takes messages and streams of events.
func acceptsBoth(headers []string) bool {
	message, stream := false, false
	for _, header := range headers {
		for kind := range strings.SplitSeq(header, ",") {
			kind, _, _ = strings.Cut(kind, ";")
			switch strings.TrimSpace(kind) {
			case "application/json", "application/*":
				message = true
			case "text/event-stream", "text/*":
				stream = true
			case "*/*":
				return true
			}
		}
	}
	return message && stream
}

// answer answers a request without the SDK, or returns false.
func (e *Endpoint) answer(a *answer, r *http.Request, visit *gateway.Visit) bool {
	m := visit.Messages()[0]
	// A notification that means nothing here gets no answer (JSON-RPC 2.0,
	// section 4.1); the SDK would refuse it.
	if e.Gateway.Cancel(visit) || m.Kind() == jsonrpc.Notification && !known(m.Method) {
		a.WriteHeader(http.StatusAccepted)
		return true
	}
	m, ok := e.Gateway.Direct(r.Context(), visit)
	if !ok {
		return false
	}
	a.Header().Set("Cache-Control", "no-cache, no-transform")
	a.Header().Set("Content-Type", "text/event-stream")
	switch {
	case m.ID == nil: // who asked has left, or may not be answered
	case a.era == modern && m.Error != nil && statusOf(m.Error.Code) != 0:
		a.refuse(refusal{status: statusOf(m.Error.Code), code: m.Error.Code, reason: m.Error.Message, id: m.ID, data: m.Error.Data})
	default:
		a.complete(m)
	}
	return true
}

// statusOf returns the status of an error (MCP 2026-07-28: basic/transports);
// zero is one of success.
func statusOf(code int64) int {
	switch code {
	case jsonrpc.CodeMethodNotFound:
		return http.StatusNotFound
	case jsonrpc.CodeInvalidParams, codeUnsupportedVersion, codeMissingCapability:
		return http.StatusBadRequest
	}
	return 0
}

const eventBefore, eventAfter = "event: message\ndata: ", "\n\n"

// complete writes the one event of a stream that ends with it.
func (a *answer) complete(m jsonrpc.Message) {
	result := m.Result
	if result != nil {
		m.Result = json.RawMessage("0") // takes the place of what need not be copied
	}
	head, err := m.Append([]byte(eventBefore))
	if err != nil { // an id that was read can be written, and so can an error's data
		head, _ = jsonrpc.Message{ID: m.ID, Error: &jsonrpc.Error{Code: jsonrpc.CodeInternalError, Message: err.Error()}}.Append([]byte(eventBefore))
		result = nil
	}
	after := eventAfter
	if result != nil {
		head, after = head[:len(head)-len("0}")], "}"+eventAfter
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.shut() {
		return
	}
	header := a.w.Header()
	header.Set("X-Accel-Buffering", "no")
	header.Set("X-Content-Type-Options", "nosniff")
	header.Set("Content-Length", strconv.Itoa(len(head)+len(result)+len(after)))
	a.begun = true
	a.bound()
	for _, part := range [][]byte{head, result, []byte(after)} {
		if _, err := a.w.Write(part); err != nil { //nolint:gosec // JSON in a stream of events is no page
			return // the client has left
		}
	}
}
