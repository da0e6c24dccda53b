package login

import (
	"bytes"
	"encoding/json"
	"errors"
	"io/fs"
	"net/http"
	"os"

	"github.com/modelcontextprotocol/go-sdk/oauthex"
)

const challengeHeader = "Www-Authenticate"

// maxChallenge is how long a challenge may be to be kept, in bytes.
const maxChallenge = 8 << 10

// A refused request is what a person's next login to a server is to meet. It is
// no secret, and is kept beside the logins for whichever process they log in
// with.
type refused struct {
	URL       string   `json:"url"`
	Status    int      `json:"status"`
	Challenge []string `json:"challenge"`
}

// note keeps the challenge of a refusal for the next login, if there is one.
func (b *Book) note(server Server, answer *http.Response) error {
	met := refused{URL: server.URL, Status: answer.StatusCode, Challenge: answer.Header[challengeHeader]}
	if _, err := oauthex.ParseWWWAuthenticate(met.Challenge); err != nil || len(met.Challenge) == 0 {
		return nil //nolint:nilerr // the login asks for another
	}
	text, err := json.Marshal(met)
	if err != nil || len(text) > maxChallenge {
		return err
	}
	path := b.Vault.file(server.Name) + ".refused"
	if kept, err := os.ReadFile(path); err == nil && bytes.Equal(kept, text) {
		return nil
	}
	if err := os.MkdirAll(b.Vault.Dir, 0o700); err != nil {
		return b.Vault.failed(err)
	}
	return b.Vault.failed(replace(path, text))
}

// forget returns what note has kept for a server at its URL, or nil, and keeps
// it no longer: a login that it does not help finds another.
func (b *Book) forget(server Server) (*refused, error) {
	path := b.Vault.file(server.Name) + ".refused"
	text, err := os.ReadFile(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil, nil //nolint:nilnil // there is none
	}
	if err == nil {
		err = os.Remove(path)
	}
	if err != nil {
		return nil, b.Vault.failed(err)
	}
	var met refused
	_ = json.Unmarshal(text, &met) // what is no note is of no server
	if met.URL != server.URL {
		return nil, nil //nolint:nilnil // it is of no use
	}
	return &met, nil
}

// lacking returns the scope that a server wants in addition, and whether that
// is what a refusal says (RFC 6750, section 3.1).
func lacking(answer *http.Response) (scope string, ok bool) {
	challenges, err := oauthex.ParseWWWAuthenticate(answer.Header[challengeHeader])
	if err != nil {
		return "", false
	}
	for _, c := range challenges {
		if c.Scheme == "bearer" && c.Params["error"] == "insufficient_scope" {
			return c.Params["scope"], true
		}
	}
	return "", false
}
