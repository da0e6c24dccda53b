package sandbox

import (
	"cmp"
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/catalog"
)

// A Remote is a server that somebody else runs, in the place of a container.
type Remote struct {
	// URL is the entry's, with ${VARIABLE} in its query for secrets.
	URL string `json:"url"`
	// Transport is [catalog.StreamableHTTP] or [catalog.SSE].
	Transport string   `json:"transport"`
	Headers   []Header `json:"headers,omitempty"`
	// Addresses may be connected to though they are not public.
	Addresses []string `json:"addresses,omitempty"`
	// Principal is whom the sessions are for: what a server offers may depend on
	// that, and nobody gets what another one was given.
	Principal string `json:"principal"`
}

// A Header is sent with every request to a remote server.
type Header struct {
	Name string `json:"name"`
	// Secrets are the variables of the secrets in its value.
	Secrets []string `json:"secrets,omitempty"`
	// Template is the value with ${VARIABLE} for secrets. It is shown nowhere:
	// people write secrets into it, too.
	Template string `json:"-"`
}

// String names the header and what is in it.
func (h Header) String() string {
	if len(h.Secrets) == 0 {
		return h.Name
	}
	return h.Name + " (with " + strings.Join(h.Secrets, ", ") + ")"
}

// HTTP is the port that a server in a container listens on.
type HTTP struct {
	Port      int    `json:"port"`
	Path      string `json:"path"`
	Transport string `json:"transport"`
}

// CompileRemote turns the entry of a remote server and the user's settings into
// a Spec for one principal. The error is the settings' own.
func CompileRemote(entry catalog.Server, settings map[string]any, principal string) (Spec, error) {
	if err := entry.CheckSettings(settings); err != nil {
		return Spec{}, err
	}
	r := &Remote{
		URL: entry.Remote.URL, Transport: entry.Remote.Transport,
		Addresses: entry.Remote.Addresses, Principal: principal,
	}
	for name, template := range entry.Remote.Headers {
		r.Headers = append(r.Headers, Header{Name: name, Template: template, Secrets: references(template)})
	}
	slices.SortFunc(r.Headers, func(a, b Header) int { return cmp.Compare(a.Name, b.Name) })
	return Spec{Server: entry.Name, Remote: r, Secrets: requiredSecrets(entry.Secrets), Stop: entry.Timeouts.Stop}, nil
}

// references returns the variables of a template.
func references(template string) []string {
	var names []string
	for _, after := range strings.Split(template, "${")[1:] {
		if name, _, closed := strings.Cut(after, "}"); closed && !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	return names
}

// Program identifies what is run, whatever its settings and its principal: the
// digest of the image, of the images of its tools, or of the URL.
func (s Spec) Program() string {
	if s.Remote != nil {
		return digest(s.Remote.URL)
	}
	if len(s.Runs) > 0 {
		pins := make([]string, len(s.Runs))
		for i, r := range s.Runs {
			pins[i] = r.Tool + " " + r.Image.Pin.Digest
		}
		return digest(pins)
	}
	return s.Image.Pin.Digest
}

// describe puts a remote server into a grant.
func (g *Grant) describe(r Remote) {
	g.Transport, g.URL, g.Addresses, g.Unenforced = r.Transport, r.URL, r.Addresses, nil
	for _, h := range r.Headers {
		g.Headers = append(g.Headers, h.String())
	}
}

// remoteLines describe the grant of a remote server.
func (g Grant) remoteLines() []string {
	lines := []string{
		"source:    " + string(g.Source) + ", transport " + g.Transport,
		"url:       " + g.URL,
	}
	for _, h := range g.Headers {
		lines = append(lines, "header:    "+h)
	}
	for _, a := range g.Addresses {
		lines = append(lines, "address:   "+a+" (not public)")
	}
	for _, s := range g.Secrets {
		lines = append(lines, "secret:    "+s)
	}
	lines = append(lines, "warning:   somebody else runs this server, and sees the arguments of its calls")
	if strings.HasPrefix(strings.ToLower(g.URL), "http://") {
		lines = append(lines, "warning:   the connection is not encrypted")
	}
	return lines
}
