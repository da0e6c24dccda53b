package endpoint_test

import (
	"context"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/endpoint"
	"github.com/dockgate/dockgate/internal/gateway/gatewaytest"
	"github.com/dockgate/dockgate/internal/store"
)

// A session ends when it was not used for as long as it may. What is open is
// use: a stream that waits for news, and a call that goes on without its client.
func TestSessionTimeout(t *testing.T) {
	const timeout = 20 * time.Second // shorter than a call may take
	tests := []struct {
		name, method, body string
		leaves             bool // when it has begun
		want               int
	}{
		{"nothing", "", "", false, http.StatusNotFound},
		{"a request that is over", http.MethodPost, ping, false, http.StatusNotFound},
		{"a stream that waits for news", http.MethodGet, "", false, http.StatusOK},
		{"a stream that its client has closed", http.MethodGet, "", true, http.StatusNotFound},
		{"a call", http.MethodPost, hangCall, false, http.StatusOK},
		{"a call that its client has left behind", http.MethodPost, hangCall, true, http.StatusOK},
		{"a call with progress, left behind", http.MethodPost, hangProgress, true, http.StatusOK},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				server := newHanging()
				h := gatewaytest.Build(t, gatewaytest.Options{Mode: approval.ModeAll, Active: []string{"one"}, Logger: slog.New(slog.DiscardHandler)}, server.servers())
				db, err := store.Open(t.Context(), t.TempDir())
				check(t, err)
				defer func() { check(t, db.Close()) }()
				defer func() { check(t, h.Dismiss(context.WithoutCancel(t.Context()))) }()
				f := &front{House: h, Endpoint: endpoint.New(endpoint.Options{
					Gateway: h.Gateway, Access: access.New(access.Options{Source: db, Open: true}),
					Limits: endpoint.Limits{SessionTimeout: timeout}, Logger: slog.New(slog.DiscardHandler),
				})}
				session := sessionOf(t, f, initialize)
				ctx, leave := context.WithCancel(t.Context())
				over := make(chan struct{})
				go func() {
					defer close(over)
					if tt.method == "" {
						return
					}
					r := httptest.NewRequestWithContext(ctx, tt.method, "http://localhost"+endpoint.Path, strings.NewReader(tt.body))
					r.Header.Set("Content-Type", "application/json")
					r.Header.Set("Accept", "application/json, text/event-stream")
					r.Header.Set(session[0], session[1])
					f.ServeHTTP(httptest.NewRecorder(), r)
				}()
				synctest.Wait()
				if tt.leaves {
					leave()
					<-over
				}
				<-time.After(timeout + time.Second)
				if w := post(t, f, ping, session...); w.Code != tt.want || strings.Contains(w.Body.String(), `"result"`) != (tt.want == http.StatusOK) {
					t.Errorf("ping after %v of %s = %d %s, want %d", timeout, tt.name, w.Code, w.Body, tt.want)
				}
				leave()
				close(server.let)
				<-over
				<-time.After(timeout + time.Second)
				if w := post(t, f, ping, session...); w.Code != http.StatusNotFound {
					t.Errorf("ping after %v without any use = %d %s, want 404", timeout, w.Code, w.Body)
				}
			})
		})
	}
}
