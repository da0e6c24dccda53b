package outside_test

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/outside"
)

// environment looks variables up that are written "NAME=value".
func environment(variables ...string) func(name string) (string, bool) {
	return func(name string) (string, bool) {
		for _, v := range variables {
			if key, value, _ := strings.Cut(v, "="); key == name {
				return value, true
			}
		}
		return "", false
	}
}

func TestRun(t *testing.T) {
	tests := []struct {
		name string
		from outside.Container
		want string
	}{
		{"nothing of the host", outside.Container{}, "run -i --rm --cap-drop ALL -v /var/run/docker.sock:/var/run/docker.sock -v dockgate:/data dockgate/gateway"},
		{
			"home and a project in it",
			outside.Container{Host: outside.Host{Home: "/home/ann", User: "1000:1000", Project: "/home/ann/shop"}},
			"run -i --rm --cap-drop ALL --cap-add DAC_READ_SEARCH -v /var/run/docker.sock:/var/run/docker.sock -v /home/ann:/home/ann:ro" +
				" -e DOCKGATE_HOST_HOME=/home/ann -e DOCKGATE_HOST_USER=1000:1000 -e DOCKGATE_HOST_PROJECT=/home/ann/shop -v dockgate:/data dockgate/gateway",
		},
		{
			"folders elsewhere",
			outside.Container{Host: outside.Host{Home: "/home/ann", Project: "/srv/shop", Folders: []string{"/srv/data", "/srv/shop/x", "/home/annette"}}},
			"run -i --rm --cap-drop ALL --cap-add DAC_READ_SEARCH -v /var/run/docker.sock:/var/run/docker.sock" +
				" -v /home/ann:/home/ann:ro -v /home/annette:/home/annette:ro -v /srv/data:/srv/data:ro -v /srv/shop:/srv/shop:ro" +
				" -e DOCKGATE_HOST_HOME=/home/ann -e DOCKGATE_HOST_PROJECT=/srv/shop -e DOCKGATE_HOST_FOLDERS=/srv/data:/srv/shop/x:/home/annette -v dockgate:/data dockgate/gateway",
		},
		{
			"variables of the client",
			outside.Container{Pass: []string{"TOKEN"}},
			"run -i --rm --cap-drop ALL -v /var/run/docker.sock:/var/run/docker.sock -e TOKEN -v dockgate:/data dockgate/gateway",
		},
		{
			"another socket and image",
			outside.Container{Image: "example.com/gateway:1", Socket: "/run/user/1000/docker.sock"},
			"run -i --rm --cap-drop ALL -v /run/user/1000/docker.sock:/var/run/docker.sock -e DOCKGATE_HOST_SOCKET=/run/user/1000/docker.sock -e DOCKGATE_IMAGE=example.com/gateway:1 -v dockgate:/data example.com/gateway:1",
		},
	}
	for _, tt := range tests {
		if diff := cmp.Diff(tt.want, strings.Join(tt.from.Run(), " ")); diff != "" {
			t.Errorf("%s: Run (-want +got):\n%s", tt.name, diff)
		}
	}
}

// What the command line says is what the gateway reads.
func TestRead(t *testing.T) {
	if c, inside := outside.Read(environment()); inside {
		t.Errorf("Read(nothing) = %+v, want not in a container", c)
	}
	want := outside.Container{
		Image: "dockgate/gateway", Volume: "mine", Socket: "/run/user/1000/docker.sock",
		Host: outside.Host{Home: "/home/ann", User: "1000:1000", Project: "/srv/shop", Folders: []string{"/srv/a", "/srv/b"}},
	}
	variables := []string{"DOCKGATE_IMAGE=dockgate/gateway"} // the image's own
	for _, arg := range want.Run() {
		if strings.HasPrefix(arg, "DOCKGATE_") {
			variables = append(variables, arg)
		}
	}
	got, inside := outside.Read(environment(variables...))
	if diff := cmp.Diff(want, got); diff != "" || !inside {
		t.Errorf("Read(%q): inside %v (-want +got):\n%s", variables, inside, diff)
	}
	odd, _ := outside.Read(environment("DOCKGATE_IMAGE=x", "DOCKGATE_HOST_HOME=home", "DOCKGATE_HOST_FOLDERS=:a:/srv/../b/:", "DOCKGATE_COMMAND=docker compose run"))
	if diff := cmp.Diff(outside.Container{Image: "x", Volume: "dockgate", Command: "docker compose run", Socket: outside.Socket, Host: outside.Host{Folders: []string{"/b"}}}, odd); diff != "" {
		t.Errorf("Read of odd paths (-want +got):\n%s", diff)
	}
}

func TestSees(t *testing.T) {
	host := outside.Host{Home: "/home/ann", Folders: []string{"/srv/data"}}
	for path, want := range map[string]bool{
		"/home/ann": true, "/home/ann/notes": true, "/home/annette": false, "/home": false, "/": false,
		"/srv/data/x": true, "/srv": false, "/data": false, "/tmp": false,
	} {
		if got := host.Sees(path); got != want {
			t.Errorf("Sees(%s) = %v, want %v", path, got, want)
		}
	}
	if (outside.Host{}).Sees("/data") {
		t.Error("a host of which nothing is known is seen")
	}
}

func TestUnseen(t *testing.T) {
	tests := []struct {
		host outside.Host
		path string
		want string
	}{
		{outside.Host{}, "/data/notes", `"-v", "HOME:HOME:ro", "-e", "DOCKGATE_HOST_HOME=HOME"`},
		{outside.Host{}, "/srv/data", `does not see /srv/data; add "-v", "/srv/data:/srv/data:ro", "-e", "DOCKGATE_HOST_FOLDERS=/srv/data"`},
		{outside.Host{Home: "/home/ann", Folders: []string{"/a"}}, "/srv/data", `"DOCKGATE_HOST_FOLDERS=/a:/srv/data"`},
	}
	for _, tt := range tests {
		if got := tt.host.Unseen(tt.path).Error(); !strings.Contains(got, tt.want) {
			t.Errorf("Unseen(%s) = %s, want %s in it", tt.path, got, tt.want)
		}
	}
}

func TestPhrase(t *testing.T) {
	const short = "docker run -it --rm -v dockgate:/data dockgate/gateway "
	bare, _ := outside.Read(environment("DOCKGATE_IMAGE=dockgate/gateway"))
	home, _ := outside.Read(environment("DOCKGATE_IMAGE=dockgate/gateway", "DOCKGATE_HOST_HOME=/home/ann bell"))
	compose, _ := outside.Read(environment("DOCKGATE_IMAGE=dockgate/gateway", "DOCKGATE_COMMAND=docker compose run --rm gateway"))
	tests := []struct {
		in         outside.Container
		text, want string
	}{
		{bare, "ask the user to run dockgate approve (question 1)", "ask the user to run " + short + "approve (question 1)"},
		{bare, "run dockgate approve x, or\ndockgate deny x", "run " + short + "approve x, or\n" + short + "deny x"},
		{bare, "see `dockgate audit verify`", "see `" + short + "audit verify`"},
		{bare, "dockgate runs MCP servers; dockgate/gateway approve; dockgate approved it", "dockgate runs MCP servers; dockgate/gateway approve; dockgate approved it"},
		{bare, short + "approve x", short + "approve x"},
		{bare, "with: dockgate update x", "with: docker run -it --rm -v /var/run/docker.sock:/var/run/docker.sock -v dockgate:/data dockgate/gateway update x"},
		{
			home, "dockgate add x", "docker run -it --rm -v /var/run/docker.sock:/var/run/docker.sock -v '/home/ann bell:/home/ann bell:ro'" +
				" -e 'DOCKGATE_HOST_HOME=/home/ann bell' -v dockgate:/data dockgate/gateway add x",
		},
		{home, "dockgate approve x", short + "approve x"},
		{compose, "dockgate approve x", "docker compose run --rm gateway approve x"},
	}
	for _, tt := range tests {
		if got := tt.in.Phrase(tt.text); got != tt.want {
			t.Errorf("Phrase(%q) = %q, want %q", tt.text, got, tt.want)
		}
	}
}
