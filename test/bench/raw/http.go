package raw

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"

	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// A Web is a conversation over HTTP (MCP: basic/transports, "Streamable
// HTTP"), each request on the same connection if it can be. It is for one
// goroutine.
type Web struct {
	client *http.Client
	url    string
	token  string
	// Session is the server's name for the conversation; empty in the era
	// without sessions.
	session string
	id      int64
	body    bytes.Buffer
}

// NewWeb returns a Web in which nothing was said yet. An empty token is none.
func NewWeb(url, token string) *Web {
	return &Web{client: &http.Client{Transport: &http.Transport{DisableCompression: true}}, url: url, token: token}
}

// Initialize opens a session.
func (w *Web) Initialize(ctx context.Context) error {
	if _, err := w.Request(ctx, "initialize", []byte(hello)); err != nil {
		return err
	}
	if w.session == "" {
		return errors.New("initialize: no session")
	}
	response, err := w.post(ctx, []byte(`{"jsonrpc":"2.0","method":"notifications/initialized"}`), nil)
	if err != nil {
		return err
	}
	return response.Body.Close()
}

// Request returns the result of a request in a session. An error response is a
// [*jsonrpc.Error].
func (w *Web) Request(ctx context.Context, method string, params []byte) (json.RawMessage, error) {
	return w.request(ctx, method, params, nil)
}

// RequestModern returns the result of a request without a session. Name is
// that of the tool of a call, or empty.
func (w *Web) RequestModern(ctx context.Context, method, name string, params []byte) (json.RawMessage, error) {
	headers := map[string]string{"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": method}
	if name != "" {
		headers["Mcp-Name"] = name
	}
	return w.request(ctx, method, params, headers)
}

func (w *Web) request(ctx context.Context, method string, params []byte, headers map[string]string) (_ json.RawMessage, err error) {
	w.id++
	body := fmt.Appendf(nil, `{"jsonrpc":"2.0","id":%d,"method":%q`, w.id, method)
	if params != nil {
		body = append(append(body, `,"params":`...), params...)
	}
	response, err := w.post(ctx, append(body, '}'), headers)
	if err != nil {
		return nil, err
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	w.body.Reset()
	if _, err := w.body.ReadFrom(response.Body); err != nil {
		return nil, fmt.Errorf("%s: %w", method, err)
	}
	if response.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("%s: %s: %.300s", method, response.Status, &w.body)
	}
	if id := response.Header.Get("Mcp-Session-Id"); id != "" {
		w.session = id
	}
	return w.result(method)
}

// result finds the answer among the events of a body.
func (w *Web) result(method string) (json.RawMessage, error) {
	for event := range bytes.SplitSeq(w.body.Bytes(), []byte("\n\n")) {
		_, data, ok := bytes.Cut(event, []byte("data: "))
		if !ok {
			continue
		}
		m, err := jsonrpc.Parse(data)
		switch {
		case err != nil:
			return nil, fmt.Errorf("%s: %w", method, err)
		case m.Kind() != jsonrpc.Response:
			continue
		case string(m.ID) != strconv.FormatInt(w.id, 10):
			return nil, fmt.Errorf("%s: answer to %s, want %d", method, m.ID, w.id)
		case m.Error != nil:
			return nil, fmt.Errorf("%s: %w", method, m.Error)
		}
		return m.Result, failed(m.Result)
	}
	return nil, fmt.Errorf("%s: no answer in %.300s", method, &w.body)
}

func (w *Web) post(ctx context.Context, body []byte, headers map[string]string) (*http.Response, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, w.url, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "application/json, text/event-stream")
	for name, value := range headers {
		r.Header.Set(name, value)
	}
	w.sign(r)
	if headers == nil {
		w.join(r)
	}
	return w.client.Do(r)
}

// sign says who asks.
func (w *Web) sign(r *http.Request) {
	if w.token != "" {
		r.Header.Set("Authorization", "Bearer "+w.token)
	}
}

// join makes a request one of the session.
func (w *Web) join(r *http.Request) {
	if w.session != "" {
		r.Header.Set("Mcp-Session-Id", w.session)
		r.Header.Set("Mcp-Protocol-Version", "2025-11-25")
	}
}

// Listen opens the stream on which the server sends news, until it is closed.
func (w *Web) Listen(ctx context.Context) (io.Closer, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, w.url, nil)
	if err != nil {
		return nil, err
	}
	r.Header.Set("Accept", "text/event-stream")
	w.sign(r)
	w.join(r)
	response, err := w.client.Do(r)
	if err != nil {
		return nil, err
	}
	if response.StatusCode != http.StatusOK {
		return nil, errors.Join(fmt.Errorf("GET: %s", response.Status), response.Body.Close())
	}
	return response.Body, nil
}

// Close closes the connections; it does not end the session.
func (w *Web) Close() { w.client.CloseIdleConnections() }
