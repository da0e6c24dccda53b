package login

import (
	"context"
	"crypto/subtle"
	"errors"
	"fmt"
	"net"
	"net/http"
	"net/url"
	"sync"
	"time"

	"github.com/modelcontextprotocol/go-sdk/auth"
)

// A way back is where an issuer sends the person's browser: an address of this
// machine, for the time of one login (RFC 8252, section 7.3).
type wayBack struct {
	url    string
	server *http.Server
	served chan error
	came   chan answer

	mu    sync.Mutex
	state string // what this login's answer has
}

// An answer is what the browser brought.
type answer struct {
	result auth.AuthorizationResult
	err    error
}

func listen(ctx context.Context) (*wayBack, error) {
	listener, err := (&net.ListenConfig{}).Listen(ctx, "tcp", "127.0.0.1:0")
	if err != nil {
		return nil, err
	}
	w := &wayBack{url: "http://" + listener.Addr().String() + "/callback", served: make(chan error, 1), came: make(chan answer, 1)}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /callback", w.arrive)
	w.server = &http.Server{Handler: mux, ReadHeaderTimeout: 10 * time.Second}
	go func() { w.served <- w.server.Serve(listener) }()
	return w, nil
}

// A ConsentError is what an issuer says in place of a code.
type ConsentError struct{ Code, Description string }

// Error gives the issuer's words.
func (e *ConsentError) Error() string {
	if e.Description == "" {
		return "the issuer says " + e.Code
	}
	return fmt.Sprintf("the issuer says %s: %s", e.Code, e.Description)
}

// arrive takes the answer to this login. Another program of this machine may
// come here too, but does not know the state.
func (w *wayBack) arrive(out http.ResponseWriter, r *http.Request) {
	query := r.URL.Query()
	got := answer{result: auth.AuthorizationResult{Code: query.Get("code"), State: query.Get("state"), Iss: query.Get("iss")}}
	text := "You are logged in. You can close this window."
	switch {
	case !w.expects(query.Get("state")):
		http.Error(out, "there is nothing here", http.StatusBadRequest)
		return
	case query.Get("error") != "":
		got.err = &ConsentError{Code: query.Get("error"), Description: query.Get("error_description")}
		text = "You are not logged in. You can close this window."
	case got.result.Code == "":
		got.err = &ConsentError{Code: "neither a code nor an error"}
	}
	out.Header().Set("Content-Type", "text/plain; charset=utf-8")
	out.Header().Set("Cache-Control", "no-store")
	out.Header().Set("Referrer-Policy", "no-referrer")
	_, _ = out.Write([]byte(text + "\n")) //nolint:errcheck // the browser has left
	select {
	case w.came <- got:
	default: // there was one already
	}
}

// expect says which login is answered here: the one of this address.
func (w *wayBack) expect(address string) error {
	parsed, err := url.Parse(address)
	if err != nil {
		return err
	}
	w.mu.Lock()
	defer w.mu.Unlock()
	w.state = parsed.Query().Get("state")
	return nil
}

func (w *wayBack) expects(state string) bool {
	w.mu.Lock()
	defer w.mu.Unlock()
	return w.state != "" && subtle.ConstantTimeCompare([]byte(w.state), []byte(state)) == 1
}

// wait returns what the browser brings.
func (w *wayBack) wait(ctx context.Context) (*auth.AuthorizationResult, error) {
	select {
	case got := <-w.came:
		return &got.result, got.err
	case <-ctx.Done():
		return nil, ctx.Err()
	}
}

// close ends the listener once the browser has its answer.
func (w *wayBack) close(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), 2*time.Second)
	defer cancel()
	err := w.server.Shutdown(ctx)
	if errors.Is(err, context.DeadlineExceeded) {
		err = w.server.Close()
	}
	if served := <-w.served; !errors.Is(served, http.ErrServerClosed) {
		err = errors.Join(err, served)
	}
	return err
}
