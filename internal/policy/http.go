package policy

import (
	"net/url"
	"slices"
)

// HTTP says how the gateway is reached over HTTP.
type HTTP struct {
	// Listen is "HOST:PORT" or "unix:PATH"; empty for none.
	// It is not read from files: what MCP clients start speaks on its standard
	// input and output.
	Listen string `yaml:"-"`
	// URL is the gateway's as its clients know it, if that is not where it listens.
	URL string `yaml:"url"`
	// Hosts are names of this gateway, on top of those of this machine and of
	// the URL, and Origins those of web pages that may use it.
	Hosts   []string `yaml:"hosts"`
	Origins []string `yaml:"origins"`
	// SSE serves clients of MCP 2024-11-05 too.
	SSE bool `yaml:"sse"`
	// Rate is how many messages a caller may send in a second, Burst how many
	// at once; zero is 500 and 1,000.
	Rate  float64 `yaml:"rate"`
	Burst int     `yaml:"burst"`
	// MaxInFlight is how many requests of a caller are under way at a time;
	// MaxSessions how many sessions a caller may have; MaxListens how many
	// streams that wait for news. Zero is 256, 1,000 and 100.
	MaxInFlight int `yaml:"max_in_flight"`
	MaxSessions int `yaml:"max_sessions"`
	MaxListens  int `yaml:"max_listens"`
	// SessionTimeout is how long a session lives without use; zero is 1 h.
	SessionTimeout Duration `yaml:"session_timeout"`
	// Drain is how long calls under way may take at the end; zero is 10 s.
	Drain Duration `yaml:"drain"`
	// AllowUnauthenticated lets everybody in who reaches the address, as the
	// local user. It is not read from files.
	AllowUnauthenticated bool `yaml:"-"`
}

// Names are those under which clients may ask for the gateway: the Hosts and
// that of the URL.
func (h HTTP) Names() []string {
	names := slices.Clone(h.Hosts)
	if at, err := url.Parse(h.URL); err == nil && at.Hostname() != "" {
		names = append(names, at.Hostname())
	}
	return names
}
