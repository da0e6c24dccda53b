package approval_test

import (
	"encoding/json"
	"testing"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/tool"
)

func FuzzParseExport(f *testing.F) {
	grant := sandbox.Grant{Server: "git", Transport: "stdio", Pin: sandbox.Pin{Kind: sandbox.RepoDigest, Digest: "sha256:1"}}
	definition := tool.Definition{Name: "x", JSON: []byte(`{"name":"x"}`)}
	for _, tools := range []map[string]approval.Pin{nil, {}, {"x": {Digest: definition.Digest(), JSON: definition.JSON}}} {
		a := approval.Approval{Server: "git", Grant: grant, GrantDigest: grant.Digest(), Tools: tools}
		seed, err := json.Marshal(map[string]any{"version": 1, "approvals": []approval.Approval{a}})
		if err != nil {
			f.Fatal(err)
		}
		if _, err := approval.ParseExport(seed); err != nil {
			f.Fatalf("ParseExport(%s) = %v", seed, err)
		}
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		approvals, err := approval.ParseExport(data)
		if err != nil {
			return
		}
		for _, a := range approvals {
			if a.Server == "" || a.Grant.Digest() != a.GrantDigest || a.Grant.Pin.Kind == sandbox.LocalID {
				t.Errorf("ParseExport(%q) let through %+v", data, a)
			}
			for name, pin := range a.Tools {
				if d := (tool.Definition{Name: name, JSON: pin.JSON}); d.Digest() != pin.Digest {
					t.Errorf("ParseExport(%q) let through tool %q with another digest", data, name)
				}
			}
		}
	})
}
