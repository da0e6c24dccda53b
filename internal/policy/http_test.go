package policy_test

import (
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/policy"
)

// Clients that use the address that the gateway is configured with are known
// by its name.
func TestHTTPNames(t *testing.T) {
	tests := []struct {
		http policy.HTTP
		want []string
	}{
		{policy.HTTP{}, nil},
		{policy.HTTP{Hosts: []string{"a.example"}}, []string{"a.example"}},
		{policy.HTTP{URL: "https://tools.example.com/mcp"}, []string{"tools.example.com"}},
		{policy.HTTP{URL: "https://tools.example.com:8443/mcp", Hosts: []string{"a.example"}}, []string{"a.example", "tools.example.com"}},
		{policy.HTTP{URL: "https://[2001:db8::1]/mcp"}, []string{"2001:db8::1"}},
		{policy.HTTP{URL: "tools"}, nil},
		{policy.HTTP{URL: ":"}, nil},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, tt.http.Names()); diff != "" {
			t.Errorf("Names() of %+v (-want +got):\n%s", tt.http, diff)
		}
	}
}
