package pull_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/docker/dockertest"
	"github.com/dockgate/dockgate/internal/docker/owner"
	"github.com/dockgate/dockgate/internal/docker/pull"
	"github.com/dockgate/dockgate/internal/docker/reach"
)

func TestMain(m *testing.M) { os.Exit(dockertest.Main(m)) }

// What engines say of failures that cannot be caused here, in their own words.
func TestPullSymptoms(t *testing.T) {
	tests := []struct {
		said   string
		reason error
	}{
		{"failed to register layer: Error processing tar file(exit status 1): write /usr/bin/node: no space left on device", reach.ErrDiskFull},
		{"write /var/lib/docker/tmp/GetImageBlob123: no space left on device", reach.ErrDiskFull},
		{"toomanyrequests: You have reached your pull rate limit.", pull.ErrRateLimited},
		{"unexpected EOF", pull.ErrInterrupted},
		{"read tcp 10.0.0.1:1->10.0.0.2:443: read: connection reset by peer", pull.ErrInterrupted},
		{`Get "https://registry.test/v2/": dial tcp: lookup registry.test: no such host`, pull.ErrUnreachable},
		{`Get "https://registry.test/v2/": net/http: TLS handshake timeout`, pull.ErrUnreachable},
		{"filesystem layer verification failed for digest sha256:00", pull.ErrDigestMismatch},
		{"pull access denied for x, repository does not exist or may require 'docker login'", pull.ErrNotFound},
		{"denied: requested access to the resource is denied", pull.ErrUnauthorized},
		{"no matching manifest for linux/arm64/v8 in the manifest list entries", pull.ErrNoPlatform},
		{"something nobody has thought of", nil},
	}
	for _, tt := range tests {
		t.Run(tt.said, func(t *testing.T) {
			engine := dockertest.Connect(t, owner.Options{Options: reach.Options{Host: scripted(t, tt.said)}})
			_, err := engine.Resolve(t.Context(), "registry.test/x:1", nil)
			var failed *pull.Error
			if !errors.As(err, &failed) || !errors.Is(failed.Reason, tt.reason) || !strings.Contains(err.Error(), tt.said) {
				t.Errorf("Resolve() = %#v, want reason %v and the words", err, tt.reason)
			}
		})
	}
}

// scripted is an engine whose pulls fail in the middle.
func scripted(t *testing.T, said string) string {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Api-Version", "1.41")
		w.Header().Set("Content-Type", "application/json")
		switch {
		case r.URL.Path == "/_ping":
		case strings.HasSuffix(r.URL.Path, "/images/create"):
			message, err := json.Marshal(map[string]any{"errorDetail": map[string]string{"message": said}, "error": said})
			if err != nil {
				t.Error(err)
			}
			_, _ = fmt.Fprintf(w, "{\"status\":\"Pulling from x\",\"id\":\"1\"}\n%s\n", message)
		default:
			w.WriteHeader(http.StatusNotFound)
			_, _ = fmt.Fprint(w, `{"message":"No such image"}`)
		}
	}))
	t.Cleanup(server.Close)
	return "tcp://" + server.Listener.Addr().String()
}
