//go:build unix

package e2e_test

import (
	"bytes"
	"encoding/json"
	"io"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/creack/pty"
	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/client"
)

// doctor runs "dockgate doctor --sweep" without a terminal.
func doctor(t *testing.T, h house, args ...string) (stdout, stderr string) {
	t.Helper()
	cmd := exec.CommandContext(t.Context(), binary, h.args(append([]string{"doctor", "--sweep"}, args...)...)...)
	cmd.SysProcAttr = &syscall.SysProcAttr{Setsid: true}
	var out, said bytes.Buffer
	cmd.Stdout, cmd.Stderr = &out, &said
	if err := cmd.Run(); err != nil {
		t.Fatalf("doctor --sweep %s = %v\n%s", strings.Join(args, " "), err, &said)
	}
	return out.String(), said.String()
}

// On an engine of its own, because it removes what is anybody's.
func TestDoctorSweeps(t *testing.T) {
	own, api := newOwn(t, shortDir(t), "dockgate/demo")
	h := newHouse(t, demo)
	h.host = own.Host
	state := h.id(t)
	volume := func(name, state, owner string, expires time.Duration) {
		t.Helper()
		_, err := api.VolumeCreate(t.Context(), client.VolumeCreateOptions{Name: name, Labels: map[string]string{
			"dockgate.state": state, "dockgate.owner": owner, "dockgate.server": "thing",
			"dockgate.expires": time.Now().Add(expires).Format(time.RFC3339),
		}})
		if err != nil {
			t.Fatal(err)
		}
	}
	expect := func(want ...string) {
		t.Helper()
		list, err := api.VolumeList(t.Context(), client.VolumeListOptions{})
		if err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, v := range list.Items {
			got = append(got, v.Name)
		}
		if diff := cmp.Diff(want, got); diff != "" {
			t.Errorf("volumes (-want +got):\n%s", diff)
		}
	}
	const nobody = "0123456789abcdef"
	volume("gone", state, nobody, time.Hour)
	volume("expired", "elsewhere", nobody, -time.Hour)
	volume("unknown", "elsewhere", nobody, time.Hour)

	// Nobody to ask: what may be in use stays.
	listed, said := doctor(t, h)
	for _, want := range []string{"gone", "expired", "unknown", "About an hour ago", "in 59 minutes"} {
		if !strings.Contains(listed, want) {
			t.Errorf("doctor --sweep =\n%s\nwant %q in it", listed, want)
		}
	}
	if !strings.Contains(said, "left 1 that may belong to a gateway that runs") || !strings.Contains(said, "removed 2 of 3") {
		t.Errorf("doctor --sweep says %q, want 1 left and 2 removed", said)
	}
	expect("unknown")

	answer := func(text string) {
		t.Helper()
		cmd := exec.CommandContext(t.Context(), binary, h.args("doctor", "--sweep")...)
		terminal, err := pty.Start(cmd)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := io.WriteString(terminal, text+"\n"); err != nil {
			t.Fatal(err)
		}
		shown, _ := io.ReadAll(terminal) // a terminal ends with an error
		if err := cmd.Wait(); err != nil || !bytes.Contains(shown, []byte("Remove these too? [y/N]")) {
			t.Errorf("doctor --sweep = %v, want a question:\n%s", err, shown)
		}
		if err := terminal.Close(); err != nil {
			t.Error(err)
		}
	}
	answer("n")
	expect("unknown")
	answer("y")
	expect()

	volume("unknown", "elsewhere", nobody, time.Hour)
	listed, _ = doctor(t, h, "--yes", "--json")
	var removed []struct {
		ID, Kind, Owner string
		Removed         bool
	}
	if err := json.Unmarshal([]byte(listed), &removed); err != nil {
		t.Fatalf("%v: %s", err, listed)
	}
	if len(removed) != 1 || removed[0].ID != "unknown" || removed[0].Kind != "volume" || removed[0].Owner != "unknown" || !removed[0].Removed {
		t.Errorf("doctor --sweep --yes --json = %+v, want the volume, removed", removed)
	}
	expect()

	// What a gateway of this state folder owns stays while it lives, whatever
	// its date.
	r := newTrial(t, own, api, fault{})
	r.works()
	list, err := api.ContainerList(t.Context(), client.ContainerListOptions{All: true})
	if err != nil || len(list.Items) != 1 {
		t.Fatalf("containers = %+v, %v, want one", list.Items, err)
	}
	labels := list.Items[0].Labels
	volume("old", labels["dockgate.state"], labels["dockgate.owner"], -time.Hour)
	if _, said := doctor(t, r.house, "--yes"); !strings.Contains(said, "nothing is left") {
		t.Errorf("doctor --sweep beside a gateway says %q, want nothing left", said)
	}
	expect("old")
	r.works()
}
