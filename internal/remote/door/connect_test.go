package door_test

import (
	"errors"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dockgate/dockgate/internal/remote/door"
	"github.com/dockgate/dockgate/internal/sandbox"
)

// The requests of a login go to no address that nobody approved.
func TestLoginClient(t *testing.T) {
	inside := httptest.NewServer(http.NotFoundHandler())
	defer inside.Close()
	client, err := door.NewClient(sandbox.Remote{URL: "https://example.com/mcp"})
	if err != nil {
		t.Fatal(err)
	}
	resp, err := client.Get(inside.URL)
	var refused *door.AddressError
	if !errors.As(err, &refused) {
		t.Errorf("Get(%s) = %v, %v, want an *AddressError", inside.URL, resp, err)
	}
}
