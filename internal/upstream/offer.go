package upstream

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/tool"
)

// Bounds of a list. A server's cursor may be wrong, but it must not be
// followed for ever; and what is kept of a listing is kept several times, in
// memory and in the store.
const (
	maxPages      = 1000
	maxReadBytes  = 64 << 20
	maxOfferBytes = 8 << 20
	maxEntryBytes = 256 << 10
	// maxName is far more than the 128 characters that MCP allows (2025-11-25,
	// server/tools, "Tool Names").
	maxName = 1 << 10
	// DefaultEntries is more than any model can choose from.
	DefaultEntries = 1000
)

// An Offer is all that a server lists. Its entries are the bytes that the
// server sent.
type Offer struct {
	Tools     []tool.Definition
	Prompts   []json.RawMessage
	Resources []json.RawMessage
	// Templates are resource templates.
	Templates []json.RawMessage
	// Cut names the lists that were longer than allowed, in entries or in bytes,
	// and are incomplete: "tools", "prompts", "resources", "resourceTemplates".
	Cut []string
	// Refused says what is wrong with entries that were left out.
	Refused []error
	// Missing are the answers of a server that fails to list what it announces,
	// its tools apart.
	Missing []error
}

// ErrEndless is a list whose pages do not end: a cursor was repeated, or
// there were more than 1,000 pages or 64 MiB.
var ErrEndless = errors.New("list does not end")

// Offer asks the server for every page of the lists that its capabilities
// announce. A list that the server announces but answers with an error is
// empty, except that of its tools.
func (s *Session) Offer(ctx context.Context) (Offer, error) {
	var announced struct {
		Tools     json.RawMessage `json:"tools"`
		Prompts   json.RawMessage `json:"prompts"`
		Resources json.RawMessage `json:"resources"`
	}
	if err := json.Unmarshal(s.info.Capabilities, &announced); err != nil {
		return Offer{}, fmt.Errorf("capabilities: %w", err)
	}
	var offer Offer
	var tools []json.RawMessage
	left := budget{read: maxReadBytes, kept: maxOfferBytes}
	for _, list := range []struct {
		announced json.RawMessage
		method    string
		member    string
		entries   *[]json.RawMessage
	}{
		{announced.Tools, "tools/list", "tools", &tools},
		{announced.Prompts, "prompts/list", "prompts", &offer.Prompts},
		{announced.Resources, "resources/list", "resources", &offer.Resources},
		{announced.Resources, "resources/templates/list", "resourceTemplates", &offer.Templates},
	} {
		if list.announced == nil || string(list.announced) == "null" {
			continue
		}
		entries, cut, err := s.list(ctx, list.method, list.member, &left, &offer.Refused)
		var refusal *jsonrpc.Error
		if errors.As(err, &refusal) && list.member != "tools" {
			if refusal.Code != jsonrpc.CodeMethodNotFound { // which many do not know
				offer.Missing = append(offer.Missing, fmt.Errorf("%s: %w", list.method, err))
			}
			continue
		}
		if err != nil {
			return Offer{}, fmt.Errorf("%s: %w", list.method, err)
		}
		if cut {
			offer.Cut = append(offer.Cut, list.member)
		}
		*list.entries = entries
	}
	for _, raw := range tools {
		definition, err := tool.ParseDefinition(raw)
		if err == nil && len(definition.Name) > maxName {
			err = fmt.Errorf("tool name of %d bytes, longer than %d", len(definition.Name), maxName)
		}
		if way, ok := s.stream.(judge); ok && err == nil && s.info.Era == Modern {
			err = way.Judge(raw)
		}
		if err != nil {
			offer.Refused = append(offer.Refused, err)
			continue
		}
		offer.Tools = append(offer.Tools, definition)
	}
	return offer, nil
}

// A judge is a stream over which not every tool of a modern server can be
// called.
type judge interface {
	// Judge says why a tool's definition cannot be used.
	Judge(tool json.RawMessage) error
}

// A budget is how many bytes the lists of one offer may still have: as they
// are read, and of the entries that are kept.
type budget struct{ read, kept int }

// list asks for every page of one list, and stops when there is more than
// allowed.
func (s *Session) list(ctx context.Context, method, member string, left *budget, refused *[]error) (entries []json.RawMessage, cut bool, err error) {
	var params json.RawMessage
	seen := make(map[string]bool)
	for range maxPages {
		result, err := s.call(ctx, method, params, s.declared, nil)
		if err != nil {
			return nil, false, err
		}
		if left.read -= len(result); left.read < 0 {
			return nil, false, ErrEndless
		}
		list, cursor, err := page(result, member)
		if err != nil {
			return nil, false, err
		}
		for entry, err := range jsonrpc.Elements(list) {
			if err != nil {
				return nil, false, fmt.Errorf("%s: %w", member, err)
			}
			if len(entry) > maxEntryBytes {
				*refused = append(*refused, fmt.Errorf("%s: entry of %d bytes, longer than %d", member, len(entry), maxEntryBytes))
				continue
			}
			if left.kept -= len(entry); len(entries) == s.maxEntries || left.kept < 0 {
				return entries, true, nil
			}
			entries = append(entries, bytes.Clone(entry)) // else it would keep its whole page
		}
		// As in the official SDKs, an empty cursor is none.
		if cursor == nil || string(cursor) == `""` || string(cursor) == "null" {
			return entries, false, nil
		}
		if seen[string(cursor)] {
			return nil, false, ErrEndless
		}
		seen[string(cursor)] = true
		params = slices.Concat([]byte(`{"cursor":`), cursor, []byte("}"))
	}
	return nil, false, ErrEndless
}

// page takes the list and the cursor out of a result.
func page(result json.RawMessage, member string) (list, cursor json.RawMessage, err error) {
	for m, err := range jsonrpc.Members(result) {
		if err != nil {
			return nil, nil, err
		}
		switch string(m.Name) {
		case member:
			list = m.Value
		case "nextCursor":
			cursor = m.Value
		}
	}
	if list == nil {
		return nil, nil, fmt.Errorf("result without %s", member)
	}
	return list, cursor, nil
}
