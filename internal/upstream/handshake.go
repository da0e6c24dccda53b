package upstream

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/dockgate/dockgate/internal/era"
	"github.com/dockgate/dockgate/internal/jsonrpc"
)

// codeUnsupportedVersion is a modern server's refusal of our version.
const codeUnsupportedVersion = -32022

// handshake agrees on era and version.
func (s *Session) handshake(ctx context.Context, options Options) error {
	switch options.Era {
	case Legacy:
		c, err := s.beginInitialize()
		if err != nil {
			return err
		}
		return s.initialize(ctx, c)
	case Modern:
		c, err := s.begin(Modern, "server/discover", nil, s.declared, nil)
		if err != nil {
			return err
		}
		a, err := s.await(ctx, c, nil)
		if err != nil {
			return fmt.Errorf("server/discover: %w", err)
		}
		if err := s.discovered(a); err != nil {
			return &ProbeError{Err: err}
		}
		return nil
	}
	timeout := options.ProbeTimeout
	if timeout <= 0 {
		timeout = defaultProbe
	}
	err := s.probe(ctx, timeout)
	if err != nil && ctx.Err() == nil {
		return &ProbeError{Err: err}
	}
	return err
}

// probe finds out the era of the server (basic/transports/stdio, "Backward
// compatibility"): a DiscoverResult is modern, anything else is legacy. A
// server may have started too slowly to answer in time. If it is modern it
// will refuse initialize, and the late answer then counts; if it is legacy
// the late answer is a refusal of the probe and means nothing.
func (s *Session) probe(ctx context.Context, timeout time.Duration) error {
	probe, err := s.begin(Modern, "server/discover", nil, s.declared, nil)
	if err != nil {
		return err
	}
	defer s.forget(probe)
	timer := time.NewTimer(timeout)
	defer timer.Stop()
	a, err := s.await(ctx, probe, timer.C)
	late := errors.Is(err, errSilent)
	if err != nil && !late {
		return err
	}
	if !late {
		refusal := s.discovered(a)
		if speaksModern(refusal) {
			return s.discoverAgain(ctx, timer.C)
		}
		if refusal == nil {
			return nil
		}
	}
	initialize, err := s.beginInitialize()
	if err != nil {
		return err
	}
	refusal := s.initialize(ctx, initialize)
	if refusal == nil || !late {
		return refusal
	}
	select {
	case a := <-probe.answer:
		if s.discovered(a) == nil {
			return nil
		}
	default:
	}
	return refusal
}

// speaksModern reports whether a refusal names our version among those that its
// server speaks, as one does whose first answer came from elsewhere, such as
// the old half of a place that is just being replaced.
func speaksModern(refusal error) bool {
	var version *VersionError
	return errors.As(refusal, &version) && slices.Contains(version.Offered, era.Modern)
}

// discoverAgain asks a server once more that refused a version which it speaks
// (MCP 2026-07-28, basic/index: a client whose version was refused goes on with
// one of those that the refusal names).
func (s *Session) discoverAgain(ctx context.Context, timeout <-chan time.Time) error {
	again, err := s.begin(Modern, "server/discover", nil, s.declared, nil)
	if err != nil {
		return err
	}
	defer s.forget(again)
	a, err := s.await(ctx, again, timeout)
	if err != nil {
		return err
	}
	return s.discovered(a)
}

// errSilent is a server that did not answer in time.
var errSilent = errors.New("no answer in time")

// await waits for an answer without cancelling the request on the server:
// neither initialize nor the probe may be cancelled, since a legacy server
// takes nothing else before initialize.
func (s *Session) await(ctx context.Context, c *call, timeout <-chan time.Time) (answer, error) {
	select {
	case a := <-c.answer:
		return a, nil
	case <-timeout:
		return answer{}, errSilent
	case <-ctx.Done():
		s.forget(c)
		return answer{}, ctx.Err()
	case <-s.done:
		if !s.forget(c) {
			return <-c.answer, nil
		}
		return answer{}, &LostError{Delivered: s.delivered(c), Err: s.err}
	}
}

// discovered takes a server's answer to server/discover, or says why it is
// none of a modern server whose version is spoken here.
func (s *Session) discovered(a answer) error {
	if a.err != nil {
		return a.err
	}
	if e := a.message.Error; e != nil {
		return refused(e)
	}
	var result struct {
		Versions     []string        `json:"supportedVersions"`
		Capabilities json.RawMessage `json:"capabilities"`
		Instructions string          `json:"instructions"`
		Server       json.RawMessage `json:"serverInfo"`
		Meta         struct {
			Server json.RawMessage `json:"io.modelcontextprotocol/serverInfo"`
		} `json:"_meta"`
	}
	if err := json.Unmarshal(a.message.Result, &result); err != nil {
		return fmt.Errorf("server/discover: %w", err)
	}
	if !slices.Contains(result.Versions, era.Modern) {
		return &VersionError{Offered: result.Versions}
	}
	s.info = Info{
		Era:             Modern,
		Both:            slices.ContainsFunc(result.Versions, func(v string) bool { return v <= era.Legacy }),
		ProtocolVersion: era.Modern,
		Server:          result.Meta.Server,
		Capabilities:    capabilities(result.Capabilities),
		Instructions:    result.Instructions,
	}
	if s.info.Server == nil {
		s.info.Server = result.Server
	}
	return nil
}

// refused names the versions of a server that refused ours.
func refused(e *jsonrpc.Error) error {
	var data struct {
		Supported []string `json:"supported"`
	}
	if e.Code == codeUnsupportedVersion && json.Unmarshal(e.Data, &data) == nil && len(data.Supported) > 0 {
		return &VersionError{Offered: data.Supported}
	}
	return fmt.Errorf("server/discover: %w", e)
}

func capabilities(raw json.RawMessage) json.RawMessage {
	if len(raw) == 0 || raw[0] != '{' {
		return json.RawMessage("{}")
	}
	return raw
}

func (s *Session) beginInitialize() (*call, error) {
	params, err := json.Marshal(struct {
		Version      string          `json:"protocolVersion"`
		Capabilities json.RawMessage `json:"capabilities"`
		Client       json.RawMessage `json:"clientInfo"`
	}{era.Legacy, s.declared, s.client})
	if err != nil {
		return nil, fmt.Errorf("initialize: %w", err)
	}
	return s.begin(Legacy, "initialize", params, nil, nil)
}

// initialize waits for the answer to initialize and completes the legacy
// handshake.
func (s *Session) initialize(ctx context.Context, c *call) error {
	a, err := s.await(ctx, c, nil)
	var raw json.RawMessage
	if err == nil {
		raw, err = c.end(ctx, a)
	}
	var result struct {
		Version      string          `json:"protocolVersion"`
		Capabilities json.RawMessage `json:"capabilities"`
		Server       json.RawMessage `json:"serverInfo"`
		Instructions string          `json:"instructions"`
	}
	if err == nil {
		err = json.Unmarshal(raw, &result)
	}
	if err != nil {
		return fmt.Errorf("initialize: %w", err)
	}
	// Versions are dates; a server may only answer with ours or an older one.
	if result.Version == "" || result.Version > era.Legacy {
		return fmt.Errorf("initialize: %w", &VersionError{Offered: []string{result.Version}})
	}
	s.info = Info{
		Era:             Legacy,
		ProtocolVersion: result.Version,
		Server:          result.Server,
		Capabilities:    capabilities(result.Capabilities),
		Instructions:    result.Instructions,
	}
	return s.Notify("notifications/initialized", nil)
}

// Ping returns nil if the server answers at all, be it with an error: ping to
// a legacy server, server/discover to a modern one, which has no ping.
func (s *Session) Ping(ctx context.Context) error {
	method := "ping"
	if s.info.Era == Modern {
		method = "server/discover"
	}
	_, err := s.Call(ctx, method, nil, nil)
	var refusal *jsonrpc.Error
	if errors.As(err, &refusal) {
		return nil
	}
	return err
}
