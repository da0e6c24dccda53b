package install_test

import (
	"context"
	"errors"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/docker/dockertest"
	"github.com/dockgate/dockgate/internal/docker/install"
	"github.com/dockgate/dockgate/internal/sandbox"
	testengine "github.com/dockgate/dockgate/test/engine"
)

func TestMain(m *testing.M) { os.Exit(dockertest.Main(m)) }

// runtimeRef is an image with npm; see test/images.
const runtimeRef = "dockgate-test/node:latest"

// A package is installed once, runs from its image without network, and can be
// removed. One that does not exist leaves nothing.
func TestInstall(t *testing.T) {
	engine, api := dockertest.Require(t), dockertest.API(t)
	if _, err := api.ImageInspect(t.Context(), runtimeRef); err != nil {
		if os.Getenv("TEST_ENGINE") == "require" {
			t.Fatalf("run make images: %v", err)
		}
		t.Skipf("run make images: %v", err)
	}
	proxy, err := testengine.Tunnel(t.Context(), api)
	if err != nil {
		t.Skipf("the engine is not on this machine: %v", err)
	}
	t.Cleanup(proxy.Close)
	by := proxy.URL
	p := install.Package{
		Ecosystem: install.NPM, Name: "@modelcontextprotocol/server-sequential-thinking", Version: "2026.8.31",
		Runtime: runtimeRef,
		Env:     []string{"NPM_CONFIG_HTTPS_PROXY=" + by, "NPM_CONFIG_PROXY=" + by},
	}
	const certificates = "/etc/ssl/certs/ca-certificates.crt"
	if _, err := os.Stat(certificates); err == nil {
		p.Certificates = certificates
	}
	image, err := engine.Install(t.Context(), p, nil)
	if err != nil {
		t.Fatalf("Install(%s) = %v", p, err)
	}
	uninstall := func() {
		if err := engine.Uninstall(context.WithoutCancel(t.Context()), image.Pin.Digest); err != nil {
			t.Errorf("Uninstall(%s) = %v", p, err)
		}
	}
	t.Cleanup(uninstall)
	if image.Pin.Kind != sandbox.LocalID {
		t.Errorf("Install(%s) is pinned by %s, want the engine's id", p, image.Pin.Kind)
	}
	if got := image.Config.Entrypoint; len(got) != 2 || got[0] != "node" || !strings.HasSuffix(got[1], "/dist/index.js") {
		t.Errorf("Install(%s) runs %v, want the package's command", p, got)
	}
	if image.Config.User != "65532:65532" {
		t.Errorf("Install(%s) runs as %q, want 65532:65532", p, image.Config.User)
	}
	offline := p
	offline.Env = []string{"NPM_CONFIG_REGISTRY=http://127.0.0.1:1"} // it is not asked again
	again, err := engine.Install(t.Context(), offline, nil)
	if diff := cmp.Diff(image, again); err != nil || diff != "" {
		t.Errorf("Install(%s) again: %v, -first +second:\n%s", p, err, diff)
	}
	listed, err := engine.Installed(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	found := false
	for _, l := range listed {
		found = found || l.ID == image.Pin.Digest && l.Package == p.Name+"@"+p.Version && l.Runtime == runtimeRef
	}
	if !found {
		t.Errorf("Installed() = %+v, want %s", listed, p)
	}

	p.Name = "@dockgate-test/there-is-none"
	_, err = engine.Install(t.Context(), p, nil)
	var failed *install.Error
	if !errors.As(err, &failed) || !strings.Contains(err.Error(), p.Name) || failed.Hint() == "" {
		t.Errorf("Install(%s) = %v, want an *InstallError", p, err)
	}
	left, err := api.ContainerList(t.Context(), client.ContainerListOptions{
		All: true, Filters: make(client.Filters).Add("name", "dockgate-install-").Add("label", "dockgate.server=install "+p.Name),
	})
	if err != nil || len(left.Items) > 0 {
		t.Errorf("containers left: %v, %v", left.Items, err)
	}
}

// A package is named as its installer takes it.
func TestPackageString(t *testing.T) {
	for _, tt := range []struct {
		p    install.Package
		want string
	}{
		{install.Package{Ecosystem: install.NPM, Name: "@a/b"}, "@a/b"},
		{install.Package{Ecosystem: install.NPM, Name: "@a/b", Version: "1.x"}, "@a/b@1.x"},
		{install.Package{Ecosystem: install.PyPI, Name: "a[b]", Version: "1.2"}, "a[b]==1.2"},
		{install.Package{Ecosystem: install.PyPI, Name: "a", Version: ">=1.2,<2"}, "a>=1.2,<2"},
		{install.Package{Ecosystem: install.PyPI, Name: "a", Version: "~=1.2"}, "a~=1.2"},
	} {
		if got := tt.p.String(); got != tt.want {
			t.Errorf("%+v.String() = %q, want %q", tt.p, got, tt.want)
		}
	}
}

// Names that would be options, or several words, or run while they are
// installed, are refused.
func TestInstallRefuses(t *testing.T) {
	engine := dockertest.Require(t)
	for _, p := range []install.Package{
		{Ecosystem: install.NPM, Name: "--global", Runtime: dockertest.ProbeRef},
		{Ecosystem: install.PyPI, Name: "a b", Runtime: dockertest.ProbeRef},
		{Ecosystem: install.PyPI, Name: "git+https://example.com/a.git", Runtime: dockertest.ProbeRef},
		{Ecosystem: install.PyPI, Name: "a", With: []string{"b@https://example.com/b.tar.gz"}, Runtime: dockertest.ProbeRef},
		{Ecosystem: "cargo", Name: "a", Runtime: dockertest.ProbeRef},
	} {
		dockertest.Probe(t)
		var failed *install.Error
		if _, err := engine.Install(t.Context(), p, nil); !errors.As(err, &failed) {
			t.Errorf("Install(%+v) = %v, want an *InstallError", p, err)
		}
	}
}
