package official

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/catalog/document"
)

// DefaultBase is where the official registry is.
const DefaultBase = "https://registry.modelcontextprotocol.io"

const (
	pageSize   = 100
	mostPages  = 10
	mostBytes  = 8 << 20
	mostKept   = 256
	defaultTTL = time.Hour
)

// A Registry asks a registry of the official kind. Only Base is required. It
// may be used by several goroutines.
type Registry struct {
	// Base is the URL of the registry, without "/v0".
	Base string
	// HTTP makes the requests; nil is a client that gives up after 30 s.
	HTTP *http.Client
	// TTL is how long an answer is used again; zero is an hour.
	TTL time.Duration
	// Around is what entries may refer to.
	Around catalog.Surroundings

	mu   sync.Mutex
	kept map[string]answer
}

// An answer is what the registry said, and until when it is used.
type answer struct {
	body  []byte
	until time.Time
}

// A RequestError is a request that the registry did not answer as it should.
type RequestError struct {
	URL string
	// Status is the HTTP status; 0 if there was no answer.
	Status int
	Err    error
}

// Error names the address and what came of it.
func (e *RequestError) Error() string {
	if e.Err != nil {
		return fmt.Sprintf("registry %s: %v", e.URL, e.Err)
	}
	return fmt.Sprintf("registry %s: answered %d %s", e.URL, e.Status, http.StatusText(e.Status))
}

// Unwrap returns the cause.
func (e *RequestError) Unwrap() error { return e.Err }

// Hint says what may help.
func (e *RequestError) Hint() string { return "the catalogs on this machine work without the registry" }

// ErrUnknown says that the registry has no such server.
var ErrUnknown = errors.New("unknown to the registry")

// Search returns the servers whose name holds the query, each in its newest
// version, at most limit of them; 0 is as many as ten pages hold. A server
// that is described wrongly is unsupported, and says what is wrong.
func (g *Registry) Search(ctx context.Context, query string, limit int) ([]catalog.Server, error) {
	var found []catalog.Server
	cursor := ""
	for range mostPages {
		size := pageSize
		if limit > 0 {
			size = min(size, limit-len(found))
		}
		values := url.Values{"limit": {strconv.Itoa(size)}, "version": {"latest"}}
		if query != "" {
			values.Set("search", query)
		}
		if cursor != "" {
			values.Set("cursor", cursor)
		}
		body, err := g.get(ctx, "/v0/servers?"+values.Encode())
		if err != nil {
			return nil, err
		}
		var page struct {
			Servers  []json.RawMessage `json:"servers"`
			Metadata struct {
				NextCursor string `json:"nextCursor"`
			} `json:"metadata"`
		}
		if err := json.Unmarshal(body, &page); err != nil {
			return nil, &RequestError{URL: g.Base, Err: err}
		}
		for _, record := range page.Servers {
			if s, ok := g.entry(record); ok && (limit == 0 || len(found) < limit) {
				found = append(found, s)
			}
		}
		if cursor = page.Metadata.NextCursor; cursor == "" || limit > 0 && len(found) >= limit {
			break
		}
	}
	return found, nil
}

// Server returns a server by its name in the registry, such as
// "io.github.owner/server", in a version; "" is the newest. One that is not
// there is [ErrUnknown].
func (g *Registry) Server(ctx context.Context, name, version string) (catalog.Server, error) {
	if version == "" {
		version = "latest"
	}
	body, err := g.get(ctx, "/v0/servers/"+url.PathEscape(name)+"/versions/"+url.PathEscape(version))
	var failed *RequestError
	if errors.As(err, &failed) && failed.Status == http.StatusNotFound {
		return catalog.Server{}, fmt.Errorf("server %q: %w", name, ErrUnknown)
	}
	if err != nil {
		return catalog.Server{}, err
	}
	s, ok := g.entry(body)
	if !ok {
		return catalog.Server{}, fmt.Errorf("server %q: %w", name, ErrUnknown)
	}
	return s, nil
}

// entry converts one record. It returns false for one that was deleted.
func (g *Registry) entry(record []byte) (catalog.Server, bool) {
	origin := catalog.Origin{Catalog: g.Base, Kind: catalog.User}
	list := append(append([]byte(`{"servers":[`), record...), "]}"...)
	file, err := catalog.ParseWith(origin, list, func(r *document.Reader, root *yaml.Node, origin catalog.Origin) catalog.File {
		return Read(r, root, origin, g.Around)
	})
	if err == nil {
		for i := range file.Servers {
			file.Servers[i].Origin.Line = 0 // of an answer, not of a file
		}
		if len(file.Servers) == 0 {
			return catalog.Server{}, false
		}
		return file.Servers[0], true
	}
	var named struct {
		Server struct {
			Name string `json:"name"`
		} `json:"server"`
	}
	if json.Unmarshal(record, &named) != nil || named.Server.Name == "" {
		return catalog.Server{}, false
	}
	s := server{name: named.Server.Name}.convert(origin, g.Around)
	var problems catalog.Problems
	s.Unsupported = "is described wrongly"
	if errors.As(err, &problems) {
		var texts []string
		for _, p := range problems {
			texts = append(texts, strings.TrimPrefix(p.Field+" "+p.Text, "servers[0]."))
		}
		s.Unsupported += ": " + strings.Join(texts, "; ")
	}
	return s, true
}

// get returns what the registry answers, from what is kept if it is fresh. If
// the registry cannot be asked, what was kept is used for longer.
func (g *Registry) get(ctx context.Context, path string) ([]byte, error) {
	address := strings.TrimRight(g.Base, "/") + path
	g.mu.Lock()
	old, known := g.kept[address]
	g.mu.Unlock()
	if known && time.Now().Before(old.until) {
		return old.body, nil
	}
	body, err := g.ask(ctx, address)
	var failed *RequestError
	if errors.As(err, &failed) && (failed.Status == 0 || failed.Status >= http.StatusInternalServerError) && known && ctx.Err() == nil {
		return old.body, nil
	}
	if err != nil {
		return nil, err
	}
	g.keep(address, body)
	return body, nil
}

func (g *Registry) keep(address string, body []byte) {
	ttl := g.TTL
	if ttl == 0 {
		ttl = defaultTTL
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.kept == nil || len(g.kept) >= mostKept {
		g.kept = make(map[string]answer)
	}
	g.kept[address] = answer{body: body, until: time.Now().Add(ttl)}
}

func (g *Registry) ask(ctx context.Context, address string) (_ []byte, err error) {
	client := g.HTTP
	if client == nil {
		client = &http.Client{Timeout: 30 * time.Second}
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodGet, address, nil)
	if err != nil {
		return nil, &RequestError{URL: address, Err: err}
	}
	request.Header.Set("Accept", "application/json")
	response, err := client.Do(request)
	if err != nil {
		return nil, &RequestError{URL: address, Err: err}
	}
	defer func() { err = errors.Join(err, response.Body.Close()) }()
	if response.StatusCode != http.StatusOK {
		return nil, &RequestError{URL: address, Status: response.StatusCode}
	}
	body, err := io.ReadAll(io.LimitReader(response.Body, mostBytes+1))
	switch {
	case err != nil:
		return nil, &RequestError{URL: address, Err: err}
	case len(body) > mostBytes:
		return nil, &RequestError{URL: address, Err: errors.New("answer is larger than 8 MiB")}
	}
	return body, nil
}
