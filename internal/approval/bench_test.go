package approval_test

import (
	"context"
	"fmt"
	"testing"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/approvaltest"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/tool"
)

// filled returns a book with 30 servers of 100 tools, and a key in it.
func filled(tb testing.TB) (*approval.Book, approval.Key, tool.Definition) {
	tb.Helper()
	book, err := approval.Open(tb.Context(), &approvaltest.Memory{}, approval.Options{
		Mode: approval.ModeAll, Record: func(context.Context, approval.Event) error { return nil },
	})
	if err != nil {
		tb.Fatal(err)
	}
	var definitions []tool.Definition
	for n := range 100 {
		name := fmt.Sprintf("tool%d", n)
		definitions = append(definitions, tool.Definition{Name: name, JSON: fmt.Appendf(nil, `{"name":%q}`, name)})
	}
	var key approval.Key
	for n := range 30 {
		grant := sandbox.Grant{Server: fmt.Sprintf("server%d", n)}
		request := approval.Request{Server: grant.Server, Grant: grant, Principal: principal.Local}
		if _, err := book.Ask(tb.Context(), request); err != nil {
			tb.Fatal(err)
		}
		if _, err := book.Pin(tb.Context(), request, definitions); err != nil {
			tb.Fatal(err)
		}
		key = approval.Key{Server: grant.Server, GrantDigest: grant.Digest()}
	}
	return book, key, definitions[50]
}

func TestCheckAllocatesNothing(t *testing.T) {
	book, key, definition := filled(t)
	digest := definition.Digest()
	allocations := testing.AllocsPerRun(100, func() {
		if got := book.CheckTool(key, definition.Name, digest); got.State != approval.Approved {
			t.Errorf("CheckTool = %v, want approved", got.State)
		}
		if got := book.Check(key); got.State != approval.Approved {
			t.Errorf("Check = %v, want approved", got.State)
		}
	})
	if allocations != 0 {
		t.Errorf("the checks of a call allocate %v times, want 0", allocations)
	}
}

func BenchmarkCheckTool(b *testing.B) {
	book, key, definition := filled(b)
	digest := definition.Digest()
	for b.Loop() {
		if book.CheckTool(key, definition.Name, digest).State != approval.Approved {
			b.Fatal("not approved")
		}
	}
}
