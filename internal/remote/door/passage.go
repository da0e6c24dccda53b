package door

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net"
	"net/http"
	"net/url"
	"strings"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/remote/mirror"
)

// maxRefusal is how much is read of what comes with an error status.
const maxRefusal = 64 << 10

// errNoFarewell keeps the SDK from waiting for a server that is stopped anyway.
var errNoFarewell = errors.New("the session ends with its server")

// origin is a URL's scheme, host and port.
func origin(u *url.URL) string {
	port := u.Port()
	if port == "" {
		port = map[string]string{"http": "80", "https": "443"}[u.Scheme]
	}
	return u.Scheme + "://" + net.JoinHostPort(strings.ToLower(u.Hostname()), port)
}

type headersKey struct{}

// WithHeaders returns a context whose requests have these headers: the SDK
// takes no others than those that it computes.
func WithHeaders(ctx context.Context, header http.Header) context.Context {
	return context.WithValue(ctx, headersKey{}, header)
}

// RoundTrip sends a request to the approved origin and nowhere else.
func (d *Door) RoundTrip(req *http.Request) (*http.Response, error) {
	if to := origin(req.URL); to != origin(d.endpoint) {
		return nil, &OriginError{Approved: origin(d.endpoint), Other: to}
	}
	if req.Method == http.MethodDelete && d.hosted {
		return nil, errNoFarewell
	}
	passed := req.Clone(req.Context())
	if passed.URL.RawQuery == d.endpoint.RawQuery {
		passed.URL.RawQuery = d.query
	}
	if d.older {
		if err := d.sign(passed); err != nil {
			return nil, err
		}
	}
	d.dress(passed)
	resp, err := d.base.RoundTrip(passed)
	if err != nil {
		return nil, err
	}
	d.reached.Store(true)
	resp.Request = req // not the one with the secrets
	checked, err := d.receive(req, resp)
	if err != nil {
		_ = resp.Body.Close()
		return nil, err
	}
	return checked, nil
}

// sign adds the token of a login, which the SDK does only to its own requests.
func (d *Door) sign(req *http.Request) error {
	if d.oauth == nil {
		return nil
	}
	source, err := d.oauth.TokenSource(req.Context())
	if err != nil || source == nil {
		return err
	}
	token, err := source.Token()
	if err != nil {
		return err
	}
	token.SetAuthHeader(req)
	return nil
}

// dress adds the headers that the SDK leaves out.
func (d *Door) dress(req *http.Request) {
	for name, values := range d.header {
		if req.Header.Get(name) == "" { // a token that was obtained for this server counts more
			req.Header[name] = values
		}
	}
	if extra, ok := req.Context().Value(headersKey{}).(http.Header); ok {
		for name, values := range extra {
			req.Header[name] = values
		}
	}
	if version := d.version.Load(); version != nil && req.Header.Get(headerVersion) == "" {
		req.Header.Set(headerVersion, *version)
	}
	if name := req.Header.Get(headerName); name != "" {
		req.Header.Set(headerName, mirror.Text(name))
	}
	// Without this, Go adds its own name and version.
	if req.Header.Get("User-Agent") == "" {
		req.Header.Set("User-Agent", "dockgate")
	}
}

// receive bounds an answer, and turns into an error what the SDK would end the
// session for though it concerns one request only.
func (d *Door) receive(req *http.Request, resp *http.Response) (*http.Response, error) {
	media, _, _ := mime.ParseMediaType(resp.Header.Get("Content-Type")) // else it is ""
	switch {
	case resp.StatusCode >= 300 && resp.StatusCode < 400:
		return bounded(resp)
	case resp.StatusCode >= 400:
		return d.refused(req, resp)
	case media == "text/event-stream":
		return resp, nil
	case req.Method != http.MethodPost || resp.StatusCode != http.StatusOK || resp.ContentLength == 0:
		return bounded(resp)
	case media != "application/json":
		// Servers answer a notification with anything.
		return bounded(resp)
	}
	body, err := d.readAll(resp)
	if err != nil {
		return nil, err
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return withBody(resp, nil), nil
	}
	m, err := jsonrpc.Parse(body)
	switch {
	case err != nil:
		return nil, &mediaError{media: media, problem: err.Error()}
	case m.Kind() == jsonrpc.Response && string(m.ID) == "null":
		return nil, m.Error
	}
	return withBody(resp, body), nil
}

// readAll reads a message.
func (d *Door) readAll(resp *http.Response) ([]byte, error) {
	if resp.ContentLength > int64(d.limit) {
		return nil, &oversizeError{d.limit}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, int64(d.limit)+1))
	if err != nil {
		return nil, fmt.Errorf("read the answer: %w", err)
	}
	if len(body) > d.limit {
		return nil, &oversizeError{d.limit}
	}
	return body, nil
}

// refused turns a refusal into an error: the server's own, if it says why in
// JSON-RPC. Those that the SDK acts upon pass.
func (d *Door) refused(req *http.Request, resp *http.Response) (*http.Response, error) {
	var unauthorized bool
	switch resp.StatusCode {
	case http.StatusUnauthorized, http.StatusForbidden:
		unauthorized = true
	case http.StatusNotFound:
		if req.Header.Get(headerSession) != "" {
			return bounded(resp)
		}
	}
	if unauthorized && d.oauth != nil && !d.older {
		return bounded(resp)
	}
	if unauthorized && d.oauth != nil {
		if err := d.oauth.Authorize(req.Context(), req, resp); err != nil {
			return nil, err
		}
		return nil, &StatusError{Code: resp.StatusCode}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxRefusal))
	if err == nil {
		if m, err := jsonrpc.Parse(body); err == nil && m.Error != nil && req.Method == http.MethodPost {
			return nil, m.Error
		}
	}
	return nil, &StatusError{Code: resp.StatusCode}
}

// bounded lets only the start of a body be read.
func bounded(resp *http.Response) (*http.Response, error) {
	resp.Body = struct {
		io.Reader
		io.Closer
	}{io.LimitReader(resp.Body, maxRefusal), resp.Body}
	return resp, nil
}

func withBody(resp *http.Response, body []byte) *http.Response {
	_ = resp.Body.Close()
	resp.Body, resp.ContentLength = io.NopCloser(bytes.NewReader(body)), int64(len(body))
	return resp
}
