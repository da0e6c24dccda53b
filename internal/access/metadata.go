package access

import (
	"net/http"
	"net/url"
	"slices"
	"strings"

	"github.com/modelcontextprotocol/go-sdk/auth"
	"github.com/modelcontextprotocol/go-sdk/oauthex"
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

// metadataURL is where clients find the metadata.
func (a *Authenticator) metadataURL() string {
	resource, err := url.Parse(a.opts.Resource)
	if err != nil {
		return ""
	}
	return resource.Scheme + "://" + resource.Host + a.MetadataPath()
}

// MetadataHandler answers with the metadata of this gateway as a protected
// resource (RFC 9728), at the path of [Authenticator.MetadataPath]. A gateway
// without issuers has none: its answer is 404. It needs no token, and any
// origin may read it.
func (a *Authenticator) MetadataHandler() http.Handler {
	if len(a.issuers) == 0 {
		return http.NotFoundHandler()
	}
	metadata := &oauthex.ProtectedResourceMetadata{
		Resource: a.opts.Resource, ResourceName: "dockgate", BearerMethodsSupported: []string{"header"},
	}
	for _, i := range a.issuers {
		metadata.AuthorizationServers = append(metadata.AuthorizationServers, i.URL)
		for _, one := range i.Scopes {
			if !slices.Contains(metadata.ScopesSupported, one.Scope) {
				metadata.ScopesSupported = append(metadata.ScopesSupported, one.Scope)
			}
		}
	}
	return auth.ProtectedResourceMetadataHandler(metadata)
}
