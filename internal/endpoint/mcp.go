package endpoint

import (
	"bytes"
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/gateway"
	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/principal"
)

// The headers of MCP.
const (
	versionHeader = "Mcp-Protocol-Version"
	sessionHeader = "Mcp-Session-Id"
	nameHeader    = "Mcp-Name"
)

// An era is a generation of the protocol.
type era int

const (
	legacy era = iota // up to 2025-11-25, with sessions
	modern            // from 2026-07-28 on, without
)

const modernVersion = "2026-07-28"

// maxBody is the longest body, in bytes: as much as over a pair of streams.
const maxBody = 16 << 20

// serveMCP lets a request through to the SDK's handler of its era.
func (e *Endpoint) serveMCP(w http.ResponseWriter, r *http.Request) {
	visitor, stay, ok := e.admit(w, r)
	if !ok {
		return
	}
	defer stay.leave()
	who := visitor.Principal
	visit, refused := e.visit(w, r, who)
	if refused == nil {
		refused = e.afford(w, stay, visit)
	}
	if refused != nil {
		refused.write(w)
		return
	}
	ctx, stop := e.Access.Watch(r.Context(), visitor)
	defer stop()
	if !listens(visit) {
		visit.Begun, visit.Watch = stay.begin, e.watch(visitor, stay)
		if !visitor.Renewable() {
			visit.WatchParked = visit.Watch
		}
		e.pass(w, r.WithContext(ctx), visit, stay)
		return
	}
	stay.leave()
	leave := e.accounts.listen(who)
	if leave == nil {
		refused := busy(w, http.StatusTooManyRequests, "10", "too many streams that wait for news")
		refused.id = visitID(visit)
		refused.write(w)
		return
	}
	defer leave()
	e.pass(w, r.WithContext(ctx), visit, stay)
}

// afford refuses what is more than a principal may send or have under way.
func (e *Endpoint) afford(w http.ResponseWriter, stay *stay, visit *gateway.Visit) *refusal {
	var refused *refusal
	requests := 0
	for _, m := range visit.Messages() {
		if m.Kind() == jsonrpc.Request {
			requests++
		}
	}
	switch {
	case !e.accounts.spend(visit.Principal, max(1, len(visit.Messages()))):
		refused = busy(w, http.StatusTooManyRequests, "1", "too many requests")
	case !stay.claim(requests):
		refused = busy(w, http.StatusTooManyRequests, "1", "too many requests at a time")
	default:
		return nil
	}
	refused.id = visitID(visit)
	return refused
}

// admit lets somebody in, or answers why not. The caller ends the stay when
// the HTTP request is over.
func (e *Endpoint) admit(w http.ResponseWriter, r *http.Request) (visitor access.Visitor, staying *stay, ok bool) {
	if refused := e.fromHere(r); refused != nil {
		refused.write(w)
		return visitor, nil, false
	}
	if e.stopping() {
		w.Header().Set("Connection", "close")
		busy(w, http.StatusServiceUnavailable, "1", "the gateway is stopping").write(w)
		return visitor, nil, false
	}
	visitor, err := e.Access.Authenticate(r.Context(), r)
	if err != nil {
		e.Logger.Debug("request refused", "err", err)
		var refused *access.RefusedError
		if errors.As(err, &refused) {
			refuseCaller(w, refused).write(w)
		} else { // the request has ended
			busy(w, http.StatusServiceUnavailable, "1", "the caller was not checked").write(w)
		}
		return visitor, nil, false
	}
	if r.Method == http.MethodGet { // it waits for news, see listen
		return visitor, &stay{}, true
	}
	if staying = e.accounts.enter(visitor.Principal); staying == nil {
		busy(w, http.StatusTooManyRequests, "1", "too many requests at a time").write(w)
		return visitor, nil, false
	}
	return visitor, staying, true
}

// refuseCaller says why somebody may not use the gateway.
func refuseCaller(w http.ResponseWriter, refused *access.RefusedError) refusal {
	if refused.Challenge != "" {
		w.Header().Set("WWW-Authenticate", refused.Challenge)
	}
	return refusal{status: refused.Status, code: jsonrpc.CodeInvalidRequest, reason: refused.Reason}
}

// visit reads what a request brings.
func (e *Endpoint) visit(w http.ResponseWriter, r *http.Request, who principal.Principal) (*gateway.Visit, *refusal) {
	if r.Method != http.MethodPost {
		return &gateway.Visit{Principal: who, Ending: e.ending}, nil
	}
	body, refused := readBody(w, r)
	if refused != nil {
		return nil, refused
	}
	visit, err := gateway.NewVisit(who, body)
	if err != nil {
		return nil, badMessage(err)
	}
	visit.Ending, visit.Timeout = e.ending, e.Limits.SessionTimeout
	return visit, nil
}

// readBody reads a body of bounded length in bounded time.
func readBody(w http.ResponseWriter, r *http.Request) ([]byte, *refusal) {
	control := http.NewResponseController(w)
	// Without deadlines, as in a test's recorder, the body is there already.
	_ = control.SetReadDeadline(time.Now().Add(bodyTimeout))
	defer func() { _ = control.SetReadDeadline(time.Time{}) }()
	var body bytes.Buffer
	if r.ContentLength > 0 {
		body.Grow(int(min(r.ContentLength, 1<<20)) + bytes.MinRead)
	}
	_, err := body.ReadFrom(http.MaxBytesReader(w, r.Body, maxBody))
	var long *http.MaxBytesError
	switch {
	case errors.As(err, &long):
		return nil, &refusal{
			status: http.StatusRequestEntityTooLarge, code: jsonrpc.CodeInvalidRequest,
			reason: "the body is longer than " + strconv.Itoa(maxBody) + " bytes",
		}
	case err != nil:
		return nil, badRequest(jsonrpc.CodeParseError, "the body ended early")
	}
	return body.Bytes(), nil
}

// visitID is the id of the one request of a visit, or nil.
func visitID(visit *gateway.Visit) json.RawMessage {
	if messages := visit.Messages(); len(messages) == 1 && messages[0].Kind() == jsonrpc.Request {
		return messages[0].ID
	}
	return nil
}

// pass answers a request, or hands it to the SDK.
func (e *Endpoint) pass(w http.ResponseWriter, r *http.Request, visit *gateway.Visit, stay *stay) {
	era := eraOf(r, visit)
	refused := e.check(w, r, visit, era)
	if refused == nil && era == legacy && r.Method != http.MethodDelete {
		refused = e.enter(r, visit)
	}
	defer visit.Release()
	if refused != nil {
		refused.id = visitID(visit)
		refused.write(w)
		return
	}
	if problem := visit.Malformed(); problem != nil && (era == modern || visit.Entered() || r.Header.Get(sessionHeader) == "") {
		refused := badRequest(problem.Code, problem.Message)
		refused.id = visitID(visit)
		if era == legacy && !visit.Batch() {
			refused.status = http.StatusOK // of any other a legacy client takes its session for ended
		}
		refused.write(w)
		return
	}
	a := newAnswer(r.Context(), w, visit, era, stay, e.Limits.KeepAlive)
	defer a.end()
	if direct(r, visit, era) && e.answer(a, r, visit) {
		return
	}
	ctx := context.WithValue(r.Context(), visitKey{}, visit)
	switch r.Method {
	case http.MethodDelete:
		if era != legacy || !isLegacyVersion(r.Header.Get(versionHeader)) {
			break // the SDK refuses it, and the session goes on
		}
		e.Gateway.End(r.Header.Get(sessionHeader), visit.Principal)
	case http.MethodGet:
		var done func()
		ctx, done = e.wait(ctx, a)
		defer done()
	}
	r = r.WithContext(ctx)
	// No secret goes further: the SDK keeps the headers beside each request.
	r.Header.Del("Cookie")
	r.Header.Set("Authorization", "Bearer visit")
	if r.Method == http.MethodPost {
		r.Body = io.NopCloser(bytes.NewReader(visit.Body()))
		r.ContentLength = int64(len(visit.Body()))
	}
	next := e.legacy
	if era == modern {
		next = e.modern
	}
	next.ServeHTTP(a, r)
}

// eraOf returns the era that a request is of: by its header or, if that is
// missing where it must not be, by the message, so that the SDK of the right
// era says so.
func eraOf(r *http.Request, visit *gateway.Visit) era {
	if version := r.Header.Get(versionHeader); version != "" || r.Header.Get(sessionHeader) != "" {
		if version >= modernVersion {
			return modern
		}
		return legacy
	}
	for _, m := range visit.Messages() {
		version := jsonrpc.Lookup(jsonrpc.Lookup(m.Params, "_meta"), "io.modelcontextprotocol/protocolVersion")
		if string(version) >= `"`+modernVersion {
			return modern
		}
	}
	return legacy
}

// check refuses what the SDK does not, and prepares what it cannot read.
func (e *Endpoint) check(w http.ResponseWriter, r *http.Request, visit *gateway.Visit, era era) *refusal {
	if r.Method != http.MethodPost {
		return nil
	}
	if era == modern {
		if refused := decodeName(r); refused != nil {
			return refused
		}
		if err := e.Gateway.Mirrored(r.Context(), visit, r.Header.Values); err != nil {
			return badRequest(codeHeaderMismatch, "header mismatch: "+err.Error())
		}
		return nil
	}
	if r.Header.Get(sessionHeader) != "" {
		return nil
	}
	messages := visit.Messages()
	if visit.Batch() || messages[0].Method != "initialize" {
		return badRequest(jsonrpc.CodeInvalidRequest, "the header Mcp-Session-Id is missing: a session begins with initialize")
	}
	if _, theirs := e.Gateway.Sessions(visit.Principal); theirs >= e.Limits.Sessions {
		return busy(w, http.StatusTooManyRequests, "60", "too many sessions are open")
	}
	return nil
}

const base64Before, base64After = "=?base64?", "?="

// decodeName decodes the header Mcp-Name, which the SDK reads plain only (MCP
// 2026-07-28: basic/transports, "Value encoding").
func decodeName(r *http.Request) *refusal {
	name := r.Header.Get(nameHeader)
	coded, ok := strings.CutPrefix(name, base64Before)
	if !ok {
		return nil
	}
	if coded, ok = strings.CutSuffix(coded, base64After); !ok {
		return nil // a name that begins so
	}
	plain, err := base64.StdEncoding.DecodeString(coded)
	if err != nil {
		return badRequest(codeHeaderMismatch, "the header Mcp-Name is not Base64")
	}
	r.Header.Set(nameHeader, string(plain))
	return nil
}

// listens reports whether a visit opens a stream that waits for news.
func listens(visit *gateway.Visit) bool {
	messages := visit.Messages()
	return len(messages) == 1 && messages[0].Method == "subscriptions/listen"
}

// known reports whether MCP has a method, in either era.
func known(method string) bool {
	switch method {
	case "initialize", "notifications/initialized", "ping", "server/discover",
		"tools/list", "tools/call", "prompts/list", "prompts/get",
		"resources/list", "resources/templates/list", "resources/read",
		"resources/subscribe", "resources/unsubscribe", "subscriptions/listen",
		"completion/complete", "logging/setLevel",
		"notifications/cancelled", "notifications/progress", "notifications/roots/list_changed":
		return true
	}
	return false
}
