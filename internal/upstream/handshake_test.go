package upstream_test

import (
	"context"
	"encoding/json"
	"errors"
	"io"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"

	"github.com/dockgate/dockgate/internal/jsonrpc"
	"github.com/dockgate/dockgate/internal/upstream"
)

const (
	probe      = `> {"id":1,"method":"server/discover","params":{"_meta":{META}}}` + "\n"
	initialize = `> {"id":2,"method":"initialize","params":INIT}` + "\n"
	accepted   = `< {"id":2,"result":{"protocolVersion":"2024-11-05","capabilities":{"tools":{}},"instructions":"be nice"}}` + "\n"
	ready      = `> {"method":"notifications/initialized"}` + "\n"
)

func TestConnectFindsTheEra(t *testing.T) {
	legacy := upstream.Info{
		Era:             upstream.Legacy,
		ProtocolVersion: "2024-11-05",
		Capabilities:    json.RawMessage(`{"tools":{}}`),
		Instructions:    "be nice",
	}
	tests := []struct {
		name, script string
		want         upstream.Info
	}{
		{"method not found", probe + `< {"id":1,"error":{"code":-32601,"message":"Method not found"}}` + "\n" + initialize + accepted + ready, legacy},
		{"error with code 0", probe + `< {"id":1,"error":{"code":0,"message":"method \"server/discover\" is invalid during session initialization"}}` + "\n" + initialize + accepted + ready, legacy},
		{"a result that is none", probe + `< {"id":1,"result":{}}` + "\n" + initialize + accepted + ready, legacy},
		{"a result with legacy versions only", probe + `< {"id":1,"result":{"supportedVersions":["2025-11-25"],"capabilities":{}}}` + "\n" + initialize + accepted + ready, legacy},
		{"version refused", probe + `< {"id":1,"error":{"code":-32022,"message":"v","data":{"supported":["2025-11-25"],"requested":"2026-07-28"}}}` + "\n" + initialize + accepted + ready, legacy},
		{
			"version refused, though it is spoken", probe + `< {"id":1,"error":{"code":-32022,"message":"v","data":{"supported":["2026-07-28"]}}}` + "\n" +
				`> {"id":2,"method":"server/discover","params":{"_meta":{META}}}` + "\n" + `< {"id":2,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}`,
			upstream.Info{Era: upstream.Modern, ProtocolVersion: "2026-07-28", Capabilities: json.RawMessage(`{}`)},
		},
		{"garbage before", "< Starting server ...\n" + probe + "< []\n< {\"id\":null,\"error\":{\"code\":-32700,\"message\":\"x\"}}\n< {\"id\":\"1\",\"error\":{\"code\":-32601,\"message\":\"x\"}}\n" + initialize + accepted + ready, legacy},
		{
			"modern", probe + `< {"id":1,"result":{"supportedVersions":["2025-11-25","2026-07-28"],"capabilities":{"x":1},"instructions":"i","_meta":{"io.modelcontextprotocol/serverInfo":{"name":"s","more":true}}}}`,
			upstream.Info{
				Era:             upstream.Modern,
				Both:            true,
				ProtocolVersion: "2026-07-28",
				Server:          json.RawMessage(`{"name":"s","more":true}`),
				Capabilities:    json.RawMessage(`{"x":1}`),
				Instructions:    "i",
			},
		},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			client, server := pipe()
			p := newPeer(t, server)
			played := start(func() { p.play(test.script) })
			s, err := upstream.Connect(t.Context(), client, options(""))
			if err != nil {
				t.Fatalf("Connect() = %v", err)
			}
			played()
			defer end(t, s)
			if diff := cmp.Diff(test.want, s.Info()); diff != "" {
				t.Errorf("Info() (-want +got):\n%s", diff)
			}
			if s.Era() != test.want.Era {
				t.Errorf("Era() = %q, want %q", s.Era(), test.want.Era)
			}
		})
	}
}

func TestConnectFails(t *testing.T) {
	isProbe := func(err error) bool {
		var probe *upstream.ProbeError
		return errors.As(err, &probe)
	}
	isVersion := func(err error) bool {
		var version *upstream.VersionError
		return errors.As(err, &version) && !isProbe(err)
	}
	isLost := func(err error) bool {
		var lost *upstream.LostError
		return errors.As(err, &lost) && errors.Is(err, io.EOF) && !isProbe(err)
	}
	isRefusal := func(err error) bool {
		var refusal *jsonrpc.Error
		return errors.As(err, &refusal) && !isProbe(err)
	}
	const legacyInit = `> {"id":1,"method":"initialize","params":INIT}` + "\n"
	tests := []struct {
		name, script string
		era          upstream.Era
		want         func(error) bool
	}{
		{"end at the probe", probe + "EOF", "", isProbe},
		{"end after the probe was refused", probe + `< {"id":1,"error":{"code":-32601,"message":"x"}}` + "\n" + initialize + "EOF", "", isProbe},
		{"refused after the probe", probe + `< {"id":1,"error":{"code":-32601,"message":"x"}}` + "\n" + initialize + `< {"id":2,"error":{"code":-32600,"message":"duplicate"}}`, "", isProbe},
		{
			"a version refused twice, though it is spoken", probe + `< {"id":1,"error":{"code":-32022,"message":"v","data":{"supported":["2026-07-28"]}}}` + "\n" +
				`> {"id":2,"method":"server/discover","params":{"_meta":{META}}}` + "\n" + `< {"id":2,"error":{"code":-32022,"message":"v","data":{"supported":["2026-07-28"]}}}`, "", isProbe,
		},
		{"end at initialize", legacyInit + "EOF", upstream.Legacy, isLost},
		{"initialize refused", legacyInit + `< {"id":1,"error":{"code":-32602,"message":"x"}}`, upstream.Legacy, isRefusal},
		{"modern version to initialize", legacyInit + `< {"id":1,"result":{"protocolVersion":"2026-07-28","capabilities":{}}}`, upstream.Legacy, isVersion},
		{"no version", legacyInit + `< {"id":1,"result":{"capabilities":{}}}`, upstream.Legacy, isVersion},
		{"known as modern, but refuses", probe + `< {"id":1,"error":{"code":-32601,"message":"x"}}`, upstream.Modern, isProbe},
		{"known as modern, but ends", probe + "EOF", upstream.Modern, isLost},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			client, server := pipe()
			p := newPeer(t, server)
			defer start(func() { p.play(test.script) })()
			if _, err := upstream.Connect(t.Context(), client, options(test.era)); err == nil || !test.want(err) {
				t.Errorf("Connect() = %v, want another error", err)
			}
			if _, err := client.Write([]byte("x")); !errors.Is(err, io.ErrClosedPipe) {
				t.Errorf("stream is open after a failed Connect: Write() = %v", err)
			}
		})
	}
}

func TestConnectRefusesBadCapabilities(t *testing.T) {
	client, _ := pipe()
	o := options(upstream.Legacy)
	o.Capabilities = json.RawMessage(`[]`)
	if _, err := upstream.Connect(t.Context(), client, o); err == nil {
		t.Error("Connect() = nil, want an error for capabilities that are no object")
	}
}

func TestSilenceMeansLegacy(t *testing.T) {
	const lateRefusal = `< {"id":1,"error":{"code":-32601,"message":"late"}}` + "\n"
	const lateDiscover = `< {"id":1,"result":{"supportedVersions":["2026-07-28"],"capabilities":{}}}` + "\n"
	const duplicate = `< {"id":2,"error":{"code":0,"message":"duplicate \"initialize\" received"}}` + "\n"
	tests := []struct {
		name, script string
		want         upstream.Era
	}{
		{"for ever", probe + initialize + accepted + ready, upstream.Legacy},
		{"late refusal before initialize is answered", probe + initialize + lateRefusal + accepted + ready, upstream.Legacy},
		{"late refusal after", probe + initialize + accepted + ready + lateRefusal, upstream.Legacy},
		{"late discovery of a server with both eras", probe + initialize + lateDiscover + accepted + ready, upstream.Legacy},
		{"late discovery of a server that is modern now", probe + initialize + lateDiscover + duplicate, upstream.Modern},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				client, server := pipe()
				p := newPeer(t, server)
				played := start(func() {
					p.play(test.script)
					p.play(`> {"id":3,"method":"tools/list","params":` + map[upstream.Era]string{
						upstream.Legacy: `{}`, upstream.Modern: `{"_meta":{META}}`,
					}[test.want] + `}` + "\n" + `< {"id":3,"result":{"tools":[]}}`)
				})
				begin := time.Now()
				s, err := upstream.Connect(t.Context(), client, options(""))
				if err != nil {
					t.Fatalf("Connect() = %v", err)
				}
				if took := time.Since(begin); took != 3*time.Second {
					t.Errorf("Connect() took %v, want 3s", took)
				}
				if s.Era() != test.want {
					t.Errorf("Era() = %q, want %q", s.Era(), test.want)
				}
				got, err := s.Call(t.Context(), "tools/list", json.RawMessage(`{}`), nil)
				if string(got) != `{"tools":[]}` || err != nil {
					t.Errorf("Call() = %s, %v after a late answer", got, err)
				}
				played()
				_ = s.Close()
			})
		})
	}
}

func TestConnectEndsWithItsContext(t *testing.T) {
	for _, era := range []upstream.Era{"", upstream.Legacy, upstream.Modern} {
		synctest.Test(t, func(t *testing.T) {
			client, server := pipe()
			p := newPeer(t, server)
			var sent []string
			drained := start(func() {
				for line := p.receive(); line != ""; line = p.receive() {
					sent = append(sent, line)
				}
			})
			ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
			defer cancel()
			_, err := upstream.Connect(ctx, client, options(era))
			var probe *upstream.ProbeError
			if !errors.Is(err, context.DeadlineExceeded) || errors.As(err, &probe) {
				t.Errorf("era %q: Connect() = %v, want %v", era, err, context.DeadlineExceeded)
			}
			drained()
			for _, line := range sent {
				if m, err := jsonrpc.Parse([]byte(line)); err != nil || m.Kind() != jsonrpc.Request {
					t.Errorf("era %q: client sent %s, want only requests before the handshake", era, line)
				}
			}
		})
	}
}
