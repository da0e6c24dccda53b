package call_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/approval/consent"
	"github.com/dockgate/dockgate/internal/call"
	"github.com/dockgate/dockgate/internal/principal"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/secret"
	"github.com/dockgate/dockgate/internal/tool"
)

// A missing secret is said with its instructions before anything is started,
// and once the user has set it the next call works.
func TestMissingSecret(t *testing.T) {
	inWorld(t, approval.ModeAll, func(t *testing.T, w *world) {
		r := request("locked", "echo")
		for range 5 {
			err := w.failure(r, call.CodeConfiguration)
			var missing *secret.MissingError
			if !errors.As(err, &missing) {
				t.Fatalf("Do() = %v, want a MissingError", err)
			}
			result, failed := call.Failure(err, tool.Ref{Server: "locked", Name: "echo"})
			if failed != nil || !strings.Contains(string(result), "set GIT_TOKEN in the environment: ask your mother") {
				t.Errorf("Failure() = %s, %v, want the instructions", result, failed)
			}
		}
		w.expectStarted(0)
		w.env["GIT_TOKEN"] = "t0ken"
		w.answers(r)
		w.expectStarted(1)
	})
}

func TestSecretsStayHidden(t *testing.T) {
	const canary = "c4nary-5ecret"
	inWorld(t, approval.ModeAsk, func(t *testing.T, w *world) {
		w.env["GIT_TOKEN"] = canary
		w.list(definition("echo", ""), definition("crash", ""), definition("hang", ""))
		var said []string
		var revealed bool
		w.fake.Before = func(_ context.Context, spec sandbox.Spec) error {
			revealed = revealed || len(spec.Secrets) == 1 && spec.Secrets[0].Value.Reveal() == canary
			encoded, err := json.Marshal(spec)
			check(t, err)
			said = append(said, string(encoded), fmt.Sprintf("%+v %#v", spec, spec), spec.Digest())
			return nil
		}
		r := request("locked", "echo")
		r.Waiting = func(text string) { said = append(said, text) }
		r.Person.Ask = func(_ context.Context, q approval.Question) (consent.Reply, error) {
			encoded, err := json.Marshal(q)
			check(t, err)
			said = append(said, strings.Join(q.Lines(), "\n"), string(encoded))
			return consent.Reply{Answer: approval.Approve, Channel: "elicitation"}, nil
		}
		w.answers(r)
		for _, name := range []string{"crash", "crash", "hang"} {
			r.Item, r.Params = name, request("locked", name).Params
			_, err := w.caller.Do(t.Context(), r)
			if err == nil {
				t.Errorf("Do(%s) = nil, want an error", name)
			}
			result, _ := call.Failure(err, tool.Ref{Server: "locked", Name: name})
			said = append(said, fmt.Sprintf("%v %+v %#v", err, err, err), string(result))
		}
		made, err := w.caller.Planner.Plan(t.Context(), principal.Local, "locked")
		check(t, err)
		encoded, err := json.Marshal(made)
		check(t, err)
		said = append(said, string(encoded), fmt.Sprintf("%+v", made), w.log.String())
		check(t, filepath.WalkDir(w.state, func(path string, entry fs.DirEntry, err error) error {
			if err != nil || entry.IsDir() {
				return err
			}
			data, err := os.ReadFile(path)
			said = append(said, string(data))
			return err
		}))
		if !revealed {
			t.Fatal("the server did not get its secret, so that this test shows nothing")
		}
		for _, text := range said {
			if strings.Contains(text, canary) {
				t.Errorf("the secret is in: %.300s", text)
			}
		}
	})
}
