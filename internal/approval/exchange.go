package approval

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/tool"
)

// exchangeVersion is the format of exported approvals.
const exchangeVersion = 1

type exchange struct {
	Version   int        `json:"version"`
	Approvals []Approval `json:"approvals"`
}

// A LocalError says that approvals are pinned by the id of a local image,
// which means something on one engine only.
type LocalError struct{ Servers []string }

// Error names the servers.
func (e *LocalError) Error() string {
	return "approvals of local images cannot be carried to another machine: " + strings.Join(e.Servers, ", ")
}

// Hint returns what to do.
func (e *LocalError) Hint() string {
	return "push the image to a registry and approve it by its digest, or export the other servers by name"
}

// Export returns the approvals of the named servers, or of all, as JSON for
// [Book.Import]. A server without one is an error, as is a local image.
func (b *Book) Export(servers ...string) ([]byte, error) {
	out := exchange{Version: exchangeVersion, Approvals: []Approval{}}
	found := map[string]bool{}
	for _, a := range b.Approvals() {
		if len(servers) == 0 || slices.Contains(servers, a.Server) {
			out.Approvals = append(out.Approvals, a)
			found[a.Server] = true
		}
	}
	for _, server := range servers {
		if !found[server] {
			return nil, fmt.Errorf("export approvals: %q is not approved", server)
		}
	}
	if err := portable(out.Approvals); err != nil {
		return nil, fmt.Errorf("export approvals: %w", err)
	}
	encoded, err := json.MarshalIndent(out, "", "  ")
	if err != nil {
		return nil, fmt.Errorf("export approvals: %w", err)
	}
	return append(encoded, '\n'), nil
}

func portable(approvals []Approval) error {
	var local []string
	for _, a := range approvals {
		if a.Grant.Local() && !slices.Contains(local, a.Server) {
			local = append(local, a.Server)
		}
	}
	if local != nil {
		return &LocalError{Servers: local}
	}
	return nil
}

// ParseExport reads what [Book.Export] wrote, so that a person can see it
// before it is imported. It refuses unknown fields, local images, and digests
// that do not fit what they stand for.
func ParseExport(data []byte) ([]Approval, error) {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	var in exchange
	if err := decoder.Decode(&in); err != nil {
		return nil, fmt.Errorf("exported approvals: %w", err)
	}
	if _, err := decoder.Token(); !errors.Is(err, io.EOF) {
		return nil, errors.New("exported approvals: more after the end")
	}
	if in.Version != exchangeVersion {
		return nil, fmt.Errorf("exported approvals: version %d, want %d", in.Version, exchangeVersion)
	}
	seen := map[Key]bool{}
	for _, a := range in.Approvals {
		if err := a.verify(); err != nil {
			return nil, fmt.Errorf("exported approvals: %q: %w", a.Server, err)
		}
		if seen[a.Key()] {
			return nil, fmt.Errorf("exported approvals: %q: the same grant twice", a.Server)
		}
		seen[a.Key()] = true
	}
	if err := portable(in.Approvals); err != nil {
		return nil, fmt.Errorf("exported approvals: %w", err)
	}
	return in.Approvals, nil
}

func (a Approval) verify() error {
	switch {
	case a.Server == "" || a.Grant.Server != a.Server:
		return fmt.Errorf("the grant is for server %q", a.Grant.Server)
	case a.Grant.Digest() != a.GrantDigest:
		return errors.New("the grant does not have the digest that was approved")
	}
	for name, pin := range a.Tools {
		definition, err := tool.ParseDefinition(pin.JSON)
		if err != nil {
			return fmt.Errorf("tool %q: %w", name, err)
		}
		if definition.Name != name || definition.Digest() != pin.Digest {
			return fmt.Errorf("tool %q: the definition does not have the digest that was approved", name)
		}
	}
	return nil
}

// Import approves what was exported elsewhere, pins included, under the
// decision's channel and principal. If the decision expires, nothing imported
// lasts longer. It takes all or nothing.
func (b *Book) Import(ctx context.Context, data []byte, decision Decision) ([]Approval, error) {
	approvals, err := ParseExport(data)
	if err != nil {
		return nil, err
	}
	if err := b.mayDecide(decision); err != nil {
		return nil, err
	}
	now := b.now()
	events := make([]Event, len(approvals))
	for i := range approvals {
		a := &approvals[i]
		a.Decided, a.Channel, a.By = now, decision.Channel, decision.By
		if !decision.Expires.IsZero() && (a.Expires.IsZero() || a.Expires.After(decision.Expires)) {
			a.Expires = decision.Expires
		}
		events[i] = Event{
			Time: now, Action: ActionImported, Server: a.Server, GrantDigest: a.GrantDigest,
			Tools: names(a.Tools), Channel: a.Channel, By: a.By.String(),
		}
	}
	err = b.change(ctx, func(*snapshot) (Change, []Event, error) {
		return Change{PutApprovals: approvals}, events, nil
	})
	if err != nil {
		return nil, fmt.Errorf("import approvals: %w", err)
	}
	return approvals, nil
}
