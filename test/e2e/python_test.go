package e2e_test

import (
	"archive/zip"
	"bytes"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"encoding/json"
	"encoding/pem"
	"fmt"
	"io"
	"math/big"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/moby/moby/client"

	"github.com/dockgate/dockgate/internal/upstream"
	"github.com/dockgate/dockgate/test/engine"
)

// pythonImage is a runtime of Python; see test/images.
const pythonImage = "dockgate-test/python"

// needPython checks that there is a runtime of Python. It is made of this
// machine's own, so where there is none the test cannot be.
func needPython(t *testing.T, api *client.Client) {
	t.Helper()
	if _, err := api.ImageInspect(t.Context(), pythonImage); err != nil {
		t.Skipf("image %s is not built, for which this machine needs Python with pip (Debian: apt-get install python3 python3-pip); then run: make images", pythonImage)
	}
}

// A wheel is a Python package as it is published.
type wheel struct {
	name     string // of the distribution, and of its module with underscores
	version  string
	requires string
	files    map[string]string // below the module
}

func (w wheel) module() string { return strings.ReplaceAll(w.name, "-", "_") }

func (w wheel) file() string { return w.module() + "-" + w.version + "-py3-none-any.whl" }

// bytes returns the wheel's file. It has a command of the package's name, and
// one of another name.
func (w wheel) bytes(t *testing.T) []byte {
	t.Helper()
	info := w.module() + "-" + w.version + ".dist-info/"
	metadata := "Metadata-Version: 2.1\nName: " + w.name + "\nVersion: " + w.version + "\n"
	if w.requires != "" {
		metadata += "Requires-Dist: " + w.requires + "\n"
	}
	files := map[string]string{
		info + "METADATA": metadata,
		info + "WHEEL":    "Wheel-Version: 1.0\nGenerator: dockgate\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
		info + "entry_points.txt": fmt.Sprintf("[console_scripts]\n%[1]s = %[2]s.__main__:main\n%[1]s-other = %[2]s.__main__:main\n",
			w.name, w.module()),
	}
	for name, text := range w.files {
		files[w.module()+"/"+name] = text
	}
	record := info + "RECORD,,\n"
	var out bytes.Buffer
	archive := zip.NewWriter(&out)
	write := func(name, text string) {
		file, err := archive.Create(name)
		if err == nil {
			_, err = io.WriteString(file, text)
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	for name, text := range files {
		write(name, text)
		record += name + ",,\n"
	}
	write(info+"RECORD", record)
	if err := archive.Close(); err != nil {
		t.Fatal(err)
	}
	return out.Bytes()
}

// A pythonIndex is a package index, as PEP 503 has it, that containers reach.
type pythonIndex struct {
	*httptest.Server
	certificate string // the file that a client trusts it by
}

// newIndex serves wheels over TLS until the test ends, each below a folder of
// its own or of others. The index is on the network of the engine, so the
// engine must be on this machine.
func newIndex(t *testing.T, api *client.Client, folders map[string][]wheel) pythonIndex {
	t.Helper()
	tunnel, err := engine.Tunnel(t.Context(), api)
	if err != nil {
		t.Skipf("the engine is not on this machine: %v", err)
	}
	host, _, err := net.SplitHostPort(tunnel.Listener.Addr().String())
	tunnel.Close()
	if err != nil {
		t.Fatal(err)
	}
	listener, err := new(net.ListenConfig).Listen(t.Context(), "tcp", net.JoinHostPort(host, "0"))
	if err != nil {
		t.Fatal(err)
	}
	certificate, file := selfSigned(t, host)
	mux := http.NewServeMux()
	for folder, wheels := range folders {
		for _, w := range wheels {
			content := w.bytes(t)
			mux.HandleFunc("GET "+folder+"/"+w.name+"/{$}", func(rw http.ResponseWriter, _ *http.Request) {
				rw.Header().Set("Content-Type", "text/html")
				_, _ = fmt.Fprintf(rw, "<!DOCTYPE html><html><body><a href=\"%[1]s#sha256=%[2]x\">%[1]s</a></body></html>", w.file(), sha256.Sum256(content))
			})
			mux.HandleFunc("GET "+folder+"/"+w.name+"/"+w.file(), func(rw http.ResponseWriter, _ *http.Request) { _, _ = rw.Write(content) })
		}
	}
	server := httptest.NewUnstartedServer(mux)
	if err := server.Listener.Close(); err != nil {
		t.Fatal(err)
	}
	server.Listener, server.TLS = listener, &tls.Config{Certificates: []tls.Certificate{certificate}, MinVersion: tls.VersionTLS12}
	server.StartTLS()
	t.Cleanup(server.Close)
	return pythonIndex{Server: server, certificate: file}
}

// selfSigned makes a certificate for an address, and a file with it.
func selfSigned(t *testing.T, address string) (certificate tls.Certificate, file string) {
	t.Helper()
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(1), NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.ParseIP(address)}, IsCA: true, BasicConstraintsValid: true,
		KeyUsage: x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
	}
	encoded, err := x509.CreateCertificate(rand.Reader, template, template, key.Public(), key)
	if err != nil {
		t.Fatal(err)
	}
	file = filepath.Join(t.TempDir(), "authorities.pem")
	if err := os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: encoded}), 0o600); err != nil {
		t.Fatal(err)
	}
	return tls.Certificate{Certificate: [][]byte{encoded}, PrivateKey: key}, file
}

// unhurried lets installations and starts take as long as a busy machine needs.
const unhurried = "patience: 10m\ntimeouts: {start: 5m}\n"

// Entries of a Claude Desktop file that run Python: a package with uvx, one of
// its modules, a file. The package is installed once, with network and what it
// needs, from the index of the user's company; then it runs from an image of
// its own, without network where the entry asks for none.
func TestPython(t *testing.T) {
	api := needEngine(t)
	needPython(t, api)
	server, err := os.ReadFile(filepath.Join("testdata", "greeter.py"))
	if err != nil {
		t.Fatal(err)
	}
	// Names that no run before had: what is installed stays until it is removed.
	id := strings.ToLower(rand.Text()[:8])
	words := wheel{name: "dockgate-test-words", version: "2.1", files: map[string]string{"__init__.py": "GREETING = 'good day, '\n"}}
	greeter := wheel{
		name: "dockgate-test-greeter-" + id, version: "1.4.2", requires: "dockgate-test-words>=2",
		files: map[string]string{"__init__.py": "", "__main__.py": string(server)},
	}
	private := wheel{name: greeter.name + "-private", version: "0.3", files: greeter.files}
	index := newIndex(t, api, map[string][]wheel{"/simple": {words, greeter}, "/private": {private}})
	t.Cleanup(func() {
		for _, name := range []string{greeter.name + "@1.4.2", greeter.module() + "@1.4.2", private.name + "@0.3"} {
			uninstall(t, api, name)
		}
	})

	h := newHouse(t, "")
	dir := filepath.Dir(h.catalog)
	project := filepath.Join(dir, "project")
	if err := os.MkdirAll(filepath.Join(project, "src"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, folder := range []string{dir, project, filepath.Join(project, "src")} {
		if err := os.Chmod(folder, 0o755); err != nil { //nolint:gosec // another user reads it in the container
			t.Fatal(err)
		}
	}
	desktop, err := json.Marshal(map[string]any{"mcpServers": map[string]any{
		"tool":    map[string]any{"command": "uvx", "args": []string{greeter.name + "@" + greeter.version, "from uvx"}},
		"range":   map[string]any{"command": "uvx", "args": []string{"--from", greeter.name + ">=1.4,<2", greeter.name + "-other", "from a range"}},
		"private": map[string]any{"command": "uvx", "args": []string{"--index-url", index.URL + "/private", private.name, "from an index of its own"}},
		"module":  map[string]any{"command": "python", "args": []string{"-m", greeter.module(), "from a module"}},
		"file":    map[string]any{"command": "python3", "args": []string{"-u", filepath.Join(project, "src", "server.py"), "from a file"}},
	}})
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"project/pyproject.toml": "[project]\nname = \"greeter\"\n", "project/src/server.py": string(server),
		"claude_desktop_config.json": string(desktop),
		"runtimes.yaml":              "version: 1\nruntimes: {uvx: {image: " + pythonImage + "}}\nservers: {}\n",
		"catalog.yaml": fmt.Sprintf("version: 1\nservers:\n  alone: {program: {runtime: uvx, package: %s, version: %s}, command: [from a catalog]}\n",
			greeter.name, greeter.version),
		"config.yaml": fmt.Sprintf("catalogs: [%[1]s/runtimes.yaml, %[1]s/claude_desktop_config.json, %[1]s/catalog.yaml]\n"+unhurried+
			"install: {env: {UV_INDEX_URL: %[2]q}, certificates: %[3]s}\n", dir, index.URL+"/simple", index.certificate),
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil { //nolint:gosec // as above
			t.Fatal(err)
		}
	}
	h.config = filepath.Join(dir, "config.yaml")

	for _, test := range []struct{ server, want string }{
		{"tool", "good day, you from uvx"},
		{"range", "good day, you from a range"},
		{"private", "nothing beside me, you from an index of its own"},
		{"module", "good day, you from a module"},
		{"file", "nothing beside me, you from a file"},
		{"alone", "good day, you from a catalog"},
	} {
		t.Run(test.server, func(t *testing.T) {
			if test.server == "alone" {
				index.Close() // it is installed already, as that of the tool
			}
			h.learn(t, test.server)
			session := connect(t, h.serve(t, "--approve", "pinned", "--server", test.server), upstream.Legacy)
			call := func(tool, arguments string) string {
				result, err := session.Call(t.Context(), "tools/call", fmt.Appendf(nil, `{"name":"%s__%s","arguments":%s}`, test.server, tool, arguments), nil)
				if err != nil {
					t.Fatal(err)
				}
				return string(result)
			}
			if got := call("greet", `{"name":"you"}`); !strings.Contains(got, `"`+test.want+`"`) {
				t.Errorf("greet = %.500s, want %q", got, test.want)
			}
			if test.server != "alone" {
				return
			}
			address := index.Listener.Addr().(*net.TCPAddr)
			got := call("reach", fmt.Sprintf(`{"host":%q,"port":%d}`, address.IP, address.Port))
			if !strings.Contains(got, "unreachable: ") || !strings.Contains(got, "Network is unreachable") {
				t.Errorf("reach = %.500s, want no network", got)
			}
		})
	}
	listed, err := h.command(t, "images", "ls")
	if err != nil || !strings.Contains(listed, greeter.name+"@1.4.2") {
		t.Errorf("images ls = %s, %v, want the package", listed, err)
	}
}
