package official

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"regexp"
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
	// Folder is where answers are kept for other processes; "" keeps them in
	// memory only.
	Folder string
	// Around is what entries may refer to.
	Around catalog.Surroundings

	mu   sync.Mutex
	kept map[string]answer
}

// CheckURL says why a text cannot be the address of a registry; nil if it can.
func CheckURL(text string) error {
	u, err := url.Parse(text)
	if err != nil || (u.Scheme != "https" && u.Scheme != "http") || u.Host == "" || u.User != nil || u.RawQuery != "" || u.Fragment != "" {
		return fmt.Errorf("is %q, want the address of a registry, such as %s", text, DefaultBase)
	}
	return nil
}

// A Found is a server that the registry has.
type Found struct {
	// Name is the registry's, such as "io.github.owner/server".
	Name    string
	Version string
	// Entry is what the server becomes here, under a name without "/".
	Entry catalog.Server
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
	var inner *url.Error
	if errors.As(e.Err, &inner) { // which would name the address again
		return fmt.Sprintf("registry %s: %v", e.URL, inner.Err)
	}
	if e.Err != nil {
		return fmt.Sprintf("registry %s: %v", e.URL, e.Err)
	}
	return fmt.Sprintf("registry %s: answered %d %s", e.URL, e.Status, http.StatusText(e.Status))
}

// Unwrap returns the cause.
func (e *RequestError) Unwrap() error { return e.Err }

// Hint says what may help.
func (e *RequestError) Hint() string {
	if e.Status == 0 {
		return "is there a way to it? The catalogs on this machine work without it: dockgate catalog ls"
	}
	return "is that a registry of the official kind? The catalogs on this machine work without it: dockgate catalog ls"
}

// ErrUnknown says that the registry has no such server.
var ErrUnknown = errors.New("unknown to the registry")

// Search returns the servers whose name holds the query, each in its newest
// version, at most limit of them; 0 is as many as ten pages hold. A server
// that is described wrongly is unsupported, and says what is wrong.
func (g *Registry) Search(ctx context.Context, query string, limit int) ([]Found, error) {
	var found []Found
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
func (g *Registry) Server(ctx context.Context, name, version string) (Found, error) {
	if version == "" {
		version = "latest"
	}
	body, err := g.get(ctx, "/v0/servers/"+url.PathEscape(name)+"/versions/"+url.PathEscape(version))
	var failed *RequestError
	if errors.As(err, &failed) && failed.Status == http.StatusNotFound {
		return Found{}, fmt.Errorf("server %q: %w", name, ErrUnknown)
	}
	if err != nil {
		return Found{}, err
	}
	s, ok := g.entry(body)
	if !ok {
		return Found{}, fmt.Errorf("server %q: %w", name, ErrUnknown)
	}
	return s, nil
}

// qualified is how the registry's schema has names. Without a "/" one could
// take the place of a server that somebody else has described.
var qualified = regexp.MustCompile(`^[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+$`)

// entry converts one record. It returns false for one that was deleted, or
// that has no name of the registry's kind.
func (g *Registry) entry(record []byte) (Found, bool) {
	var named struct {
		Server struct {
			Name    string `json:"name"`
			Version any    `json:"version"`
		} `json:"server"`
	}
	if json.Unmarshal(record, &named) != nil || !qualified.MatchString(named.Server.Name) {
		return Found{}, false
	}
	found := Found{Name: named.Server.Name}
	found.Version, _ = named.Server.Version.(string)
	origin := catalog.Origin{Catalog: g.Base, Kind: catalog.User}
	list := append(append([]byte(`{"servers":[`), record...), "]}"...)
	file, err := catalog.ParseWith(origin, list, func(r *document.Reader, root *yaml.Node, origin catalog.Origin) catalog.File {
		return Read(r, root, origin, g.Around)
	})
	if err == nil {
		if len(file.Servers) == 0 {
			return Found{}, false
		}
		found.Entry = file.Servers[0]
		found.Entry.Origin.Line = 0 // of an answer, not of a file
		return found, true
	}
	found.Entry = server{name: named.Server.Name}.convert(origin, g.Around)
	var problems catalog.Problems
	found.Entry.Unsupported = "is described wrongly"
	if errors.As(err, &problems) {
		var texts []string
		for _, p := range problems {
			texts = append(texts, strings.TrimPrefix(p.Field+" "+p.Text, "servers[0]."))
		}
		found.Entry.Unsupported += ": " + strings.Join(texts, "; ")
	}
	return found, true
}

// get returns what the registry answers, from what is kept if it is fresh. If
// the registry cannot be asked, what was kept is used for longer.
func (g *Registry) get(ctx context.Context, path string) ([]byte, error) {
	address := strings.TrimRight(g.Base, "/") + path
	old, known := g.recall(address)
	if known && time.Since(old.At) < g.ttl() {
		return old.Body, nil
	}
	body, err := g.ask(ctx, address)
	var failed *RequestError
	if errors.As(err, &failed) && (failed.Status == 0 || failed.Status >= http.StatusInternalServerError) && known && !errors.Is(ctx.Err(), context.Canceled) {
		return old.Body, nil
	}
	if err != nil {
		return nil, err
	}
	g.keep(answer{Address: address, At: time.Now(), Body: body})
	return body, nil
}

func (g *Registry) ttl() time.Duration {
	if g.TTL == 0 {
		return defaultTTL
	}
	return g.TTL
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
	case !json.Valid(body):
		return nil, &RequestError{URL: address, Status: response.StatusCode, Err: errors.New("answer is no JSON")}
	}
	return body, nil
}
