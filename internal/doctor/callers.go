package doctor

import (
	"context"
	"fmt"
	"strings"
	"time"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/policy"
	"github.com/dockgate/dockgate/internal/principal"
)

// examineCallers looks at who may use the gateway over HTTP. It says nothing of
// a gateway that nobody may.
func examineCallers(ctx context.Context, tokens []access.Token, a policy.Admission) []Finding {
	if len(tokens)+len(a.Issuers)+len(a.Roles.Each) == 0 {
		return nil
	}
	findings := []Finding{NewFinding("access", fmt.Sprintf("%s, %s of others, %s of the configuration",
		count(len(tokens), "token"), count(len(a.Issuers), "issuer"), count(len(a.Roles.Each), "role")), nil)}
	poor := func(text, hint string) {
		findings = append(findings, Finding{Subject: "access", Health: Poor, Text: text, Hint: hint})
	}
	var useless []string
	for _, token := range tokens {
		_, err := a.Roles.Of(principal.Principal{ID: token.Name, Role: token.Role})
		if err != nil || token.Expired(time.Now()) {
			useless = append(useless, token.Name)
		}
	}
	if len(useless) > 0 {
		poor("tokens that have expired, or whose role is not configured: "+strings.Join(useless, ", "),
			"end them with: dockgate token revoke "+strings.Join(useless, " "))
	}
	for _, issuer := range a.Issuers {
		if _, err := issuer.Keys(ctx); err != nil {
			poor(err.Error(), "nobody new is let in with its tokens until it answers; see access.issuers in the configuration")
		}
		role, err := a.Roles.Of(principal.Principal{ID: issuer.Name + ":"})
		if len(issuer.Scopes) == 0 && err == nil && role.Name == access.Owner {
			poor("whoever has a token of "+issuer.URL+" for this gateway may use everything that is approved",
				"say under access.issuers which scopes give which role, or set access.default_role")
		}
	}
	return findings
}

// count says how many there are of something.
func count(n int, noun string) string {
	if n == 1 {
		return "1 " + noun
	}
	return fmt.Sprintf("%d %ss", n, noun)
}
