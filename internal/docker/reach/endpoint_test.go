package reach_test

import (
	"bufio"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/sha256"
	"crypto/tls"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/hex"
	"encoding/json"
	"encoding/pem"
	"errors"
	"io"
	"math/big"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dockgate/dockgate/internal/docker"
	"github.com/dockgate/dockgate/internal/docker/dockertest"
	"github.com/dockgate/dockgate/internal/docker/owner"
	"github.com/dockgate/dockgate/internal/docker/reach"
	"github.com/dockgate/dockgate/internal/sandbox"
	"github.com/dockgate/dockgate/internal/sandbox/sandboxtest/probe"
)

func TestMain(m *testing.M) { os.Exit(dockertest.Main(m)) }

// writeContext adds a context to a Docker configuration, as "docker context
// create" does.
func writeContext(t *testing.T, dir, name, host string, tlsFiles map[string][]byte) {
	t.Helper()
	sum := sha256.Sum256([]byte(name))
	id := hex.EncodeToString(sum[:])
	meta, err := json.Marshal(map[string]any{
		"Name": name, "Metadata": map[string]any{},
		"Endpoints": map[string]any{"docker": map[string]any{"Host": host, "SkipTLSVerify": false}, "other": map[string]any{"x": 1}},
	})
	if err != nil {
		t.Fatal(err)
	}
	files := map[string][]byte{filepath.Join("contexts", "meta", id, "meta.json"): meta}
	for file, content := range tlsFiles {
		files[filepath.Join("contexts", "tls", id, "docker", file)] = content
	}
	for file, content := range files {
		if err := os.MkdirAll(filepath.Dir(filepath.Join(dir, file)), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, file), content, 0o600); err != nil {
			t.Fatal(err)
		}
	}
}

func TestHost(t *testing.T) {
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "config.json"), []byte(`{"currentContext":"current"}`), 0o600); err != nil {
		t.Fatal(err)
	}
	writeContext(t, dir, "current", "unix:///run/current.sock", nil)
	writeContext(t, dir, "named", "tcp://10.0.0.1:2376", nil)
	plain, broken := t.TempDir(), t.TempDir()
	if err := os.WriteFile(filepath.Join(broken, "config.json"), []byte(`{`), 0o600); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name    string
		options reach.Options
		host    string
		local   bool
		fails   string
	}{
		{"nothing", reach.Options{ConfigDir: plain}, "unix:///var/run/docker.sock", true, ""},
		{"current context", reach.Options{ConfigDir: dir}, "unix:///run/current.sock", true, ""},
		{"named context", reach.Options{ConfigDir: dir, Context: "named"}, "tcp://10.0.0.1:2376", false, ""},
		{"default context", reach.Options{ConfigDir: dir, Context: "default"}, "unix:///var/run/docker.sock", true, ""},
		{"host wins", reach.Options{ConfigDir: dir, Context: "named", Host: "unix:///run/x.sock"}, "unix:///run/x.sock", true, ""},
		{"host without a scheme", reach.Options{ConfigDir: dir, Host: "10.0.0.2:2375"}, "tcp://10.0.0.2:2375", false, ""},
		{"ssh", reach.Options{ConfigDir: dir, Host: "ssh://me@example.test"}, "ssh://me@example.test", false, ""},
		{"no such context", reach.Options{ConfigDir: dir, Context: "missing"}, "", false, `docker context "missing": there is no such context`},
		{"broken configuration", reach.Options{ConfigDir: broken}, "", false, "docker configuration"},
		{"no certificates", reach.Options{ConfigDir: dir, Host: "tcp://10.0.0.2:2376", CertPath: plain}, "", false, "certificates"},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			engine, err := reach.Connect(tt.options)
			if tt.fails != "" {
				if err == nil || !strings.Contains(err.Error(), tt.fails) {
					t.Errorf("Connect() = %v, want an error about %q", err, tt.fails)
				}
				return
			}
			if err != nil {
				t.Fatalf("Connect() = %v", err)
			}
			if got := engine.Host(); got != tt.host || engine.Local() != tt.local {
				t.Errorf("Host(), Local() = %q, %v, want %q, %v", got, engine.Local(), tt.host, tt.local)
			}
			if err := engine.API.Close(); err != nil {
				t.Errorf("Close() = %v", err)
			}
		})
	}
	_, err := reach.Connect(reach.Options{ConfigDir: dir, Context: "missing"})
	if missing := (*reach.ContextError)(nil); !errors.As(err, &missing) || missing.Name != "missing" || missing.Hint() == "" {
		t.Errorf("Connect() = %v, want a ContextError of \"missing\" with a hint", err)
	}
}

// authority issues certificates for both ends.
type authority struct {
	cert *x509.Certificate
	key  *ecdsa.PrivateKey
	pem  []byte
}

func newAuthority(t *testing.T) *authority {
	t.Helper()
	a := &authority{}
	cert, _ := a.issue(t, "authority", true)
	a.pem = cert
	return a
}

// issue returns a certificate and its key, as PEM.
func (a *authority) issue(t *testing.T, name string, isCA bool) (cert, key []byte) {
	t.Helper()
	private, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		t.Fatal(err)
	}
	template := &x509.Certificate{
		SerialNumber: big.NewInt(time.Now().UnixNano()), Subject: pkix.Name{CommonName: name},
		NotBefore: time.Now().Add(-time.Hour), NotAfter: time.Now().Add(time.Hour),
		IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}, BasicConstraintsValid: true, IsCA: isCA,
		KeyUsage:    x509.KeyUsageDigitalSignature | x509.KeyUsageCertSign,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageServerAuth, x509.ExtKeyUsageClientAuth},
	}
	parent, signer := template, private
	if a.cert != nil {
		parent, signer = a.cert, a.key
	}
	der, err := x509.CreateCertificate(rand.Reader, template, parent, &private.PublicKey, signer)
	if err != nil {
		t.Fatal(err)
	}
	if a.cert == nil {
		if a.cert, err = x509.ParseCertificate(der); err != nil {
			t.Fatal(err)
		}
		a.key = private
	}
	encoded, err := x509.MarshalECPrivateKey(private)
	if err != nil {
		t.Fatal(err)
	}
	return pem.EncodeToMemory(&pem.Block{Type: "CERTIFICATE", Bytes: der}),
		pem.EncodeToMemory(&pem.Block{Type: "EC PRIVATE KEY", Bytes: encoded})
}

// tlsFront puts TLS with client certificates in front of the engine's socket
// and returns its address.
func tlsFront(t *testing.T, a *authority) string {
	t.Helper()
	socket, ok := strings.CutPrefix(dockertest.Require(t).Host(), "unix://")
	if !ok {
		t.Skip("the engine under test has no socket to put TLS in front of")
	}
	certPEM, keyPEM := a.issue(t, "engine", false)
	cert, err := tls.X509KeyPair(certPEM, keyPEM)
	if err != nil {
		t.Fatal(err)
	}
	clients := x509.NewCertPool()
	clients.AddCert(a.cert)
	listener, err := tls.Listen("tcp", "127.0.0.1:0", &tls.Config{
		Certificates: []tls.Certificate{cert}, ClientCAs: clients, ClientAuth: tls.RequireAndVerifyClientCert,
		MinVersion: tls.VersionTLS12,
	})
	if err != nil {
		t.Fatal(err)
	}
	var group sync.WaitGroup
	group.Go(func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			group.Go(func() { relay(conn.(*tls.Conn), socket) })
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		group.Wait()
	})
	return listener.Addr().String()
}

// relay passes both directions on, and the end of each.
func relay(front *tls.Conn, socket string) {
	defer func() { _ = front.Close() }()
	if front.Handshake() != nil {
		return
	}
	back, err := net.Dial("unix", socket)
	if err != nil {
		return
	}
	defer func() { _ = back.Close() }()
	var group sync.WaitGroup
	group.Go(func() {
		_, _ = io.Copy(back, front)
		_ = back.(*net.UnixConn).CloseWrite()
	})
	group.Go(func() {
		_, _ = io.Copy(front, back)
		_ = front.CloseWrite()
		_ = front.Close()
	})
	group.Wait()
}

// converses starts the echo, talks with it and closes it.
func converses(t *testing.T, engine *docker.Engine, image sandbox.Image) {
	t.Helper()
	p, err := engine.Start(t.Context(), dockertest.Spec(image, probe.Echo))
	if err != nil {
		t.Fatalf("Start() = %v", err)
	}
	if _, err := io.WriteString(p, "hello\n"); err != nil {
		t.Errorf("Write() = %v", err)
	}
	if got, err := bufio.NewReader(p).ReadString('\n'); err != nil || got != "hello\n" {
		t.Errorf("Read() = %q, %v", got, err)
	}
	if err := p.Close(); err != nil {
		t.Errorf("Close() = %v", err)
	}
	if got, want := p.Exit(), (sandbox.Exit{}); got != want {
		t.Errorf("Exit() = %+v, want %+v, by the end of its input", got, want)
	}
}

func TestTLS(t *testing.T) {
	_, image := dockertest.Probe(t)
	ours, strange := newAuthority(t), newAuthority(t)
	address := tlsFront(t, ours)
	files := func(ca, client *authority) map[string][]byte {
		cert, key := client.issue(t, "client", false)
		return map[string][]byte{"ca.pem": ca.pem, "cert.pem": cert, "key.pem": key}
	}
	certificates := func(ca, client *authority) string {
		dir := t.TempDir()
		for name, content := range files(ca, client) {
			if err := os.WriteFile(filepath.Join(dir, name), content, 0o600); err != nil {
				t.Fatal(err)
			}
		}
		return dir
	}
	contexts := t.TempDir()
	writeContext(t, contexts, "secure", "tcp://"+address, files(ours, ours))
	good := []struct {
		name    string
		options reach.Options
	}{
		{"host", reach.Options{Host: "tcp://" + address, CertPath: certificates(ours, ours), TLS: reach.TLSVerify}},
		{"host, not verified", reach.Options{Host: "tcp://" + address, CertPath: certificates(strange, ours)}},
		{"context", reach.Options{ConfigDir: contexts, Context: "secure"}},
	}
	for _, tt := range good {
		t.Run(tt.name, func(t *testing.T) { converses(t, dockertest.Connect(t, owner.Options{Options: tt.options}), image) })
	}
	bad := []struct {
		name    string
		options reach.Options
	}{
		{"unknown engine", reach.Options{Host: "tcp://" + address, CertPath: certificates(strange, ours), TLS: reach.TLSVerify}},
		{"unknown client", reach.Options{Host: "tcp://" + address, CertPath: certificates(ours, strange), TLS: reach.TLSVerify}},
		{"no TLS", reach.Options{Host: "tcp://" + address}},
	}
	for _, tt := range bad {
		t.Run(tt.name, func(t *testing.T) {
			_, err := dockertest.Connect(t, owner.Options{Options: tt.options}).Info(t.Context())
			var engineErr *reach.EngineError
			if !errors.As(err, &engineErr) || engineErr.Hint() == "" {
				t.Errorf("Info() = %v, want an EngineError with a hint", err)
			}
		})
	}
}

func TestSSH(t *testing.T) {
	_, image := dockertest.Probe(t)
	if _, err := exec.LookPath("docker"); err != nil {
		t.Skip("what ssh would run on the other host, the docker command, is not installed")
	}
	// The other host is this one; ssh itself is not what is tested.
	dir := t.TempDir()
	if err := os.WriteFile(filepath.Join(dir, "ssh"), []byte("#!/bin/sh\nexec docker system dial-stdio\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	t.Setenv("PATH", dir+string(os.PathListSeparator)+os.Getenv("PATH"))
	converses(t, dockertest.Connect(t, owner.Options{Options: reach.Options{Host: "ssh://me@example.test"}}), image)
}
