package access

import (
	"net/http"
	"net/url"
	"strings"
)

// wellKnown is where the metadata of a protected resource is, in front of the
// resource's own path (RFC 9728, section 3.1).
const wellKnown = "/.well-known/oauth-protected-resource"

// MetadataPath is where [Authenticator.MetadataHandler] belongs.
func (a *Authenticator) MetadataPath() string {
	resource, err := url.Parse(a.opts.Resource)
	if err != nil {
		return wellKnown
	}
	return wellKnown + strings.TrimSuffix(resource.EscapedPath(), "/")
}

// MetadataHandler answers with the metadata of this gateway as a protected
// resource (RFC 9728), at the path of [Authenticator.MetadataPath]. A gateway
// without issuers has none: its answer is 404.
func (a *Authenticator) MetadataHandler() http.Handler { return http.NotFoundHandler() }
