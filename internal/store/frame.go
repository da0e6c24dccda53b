package store

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/dockgate/dockgate/internal/approval"
	"github.com/dockgate/dockgate/internal/inventory"
	"github.com/dockgate/dockgate/internal/tool"
)

// Tool definitions are kept in frames: byte strings, each after its length.
// Reading ten thousand of them is cutting, not parsing, which is what lets a
// gateway list them within its first tenths of a second.

var errFrame = errors.New("damaged frame")

func frame(parts ...[]byte) []byte {
	size := 0
	for _, p := range parts {
		size += len(p) + binary.MaxVarintLen32
	}
	out := make([]byte, 0, size)
	for _, p := range parts {
		out = binary.AppendUvarint(out, uint64(len(p)))
		out = append(out, p...)
	}
	return out
}

// unframe cuts a frame into its parts, which share its memory.
func unframe(data []byte) ([][]byte, error) {
	var parts [][]byte
	for len(data) > 0 {
		length, n := binary.Uvarint(data)
		if n <= 0 || length > math.MaxInt32 || int(length) > len(data)-n {
			return nil, errFrame
		}
		end := n + int(length)
		parts = append(parts, data[n:end:end])
		data = data[end:]
	}
	return parts, nil
}

// A framed offer has its format's version, then four lists and three raw
// members; one that is stale has the reason too.
const (
	offerVersion = "1"
	offerParts   = 8
)

// Framed pins have their format's version, then four parts for each: so the
// frame of no tools at all is not empty.
const pinsVersion = "1"

func frameOffer(o inventory.Offer) []byte {
	tools := make([][]byte, 0, 3*len(o.Tools))
	for _, t := range o.Tools {
		tools = append(tools, []byte(t.Name), []byte(t.Pin), t.JSON)
	}
	parts := [][]byte{
		[]byte(offerVersion), frame(tools...), frameList(o.Prompts), frameList(o.Resources),
		frameList(o.Templates), o.Capabilities, o.Info, o.Instructions,
	}
	if o.Stale != "" {
		parts = append(parts, []byte(o.Stale))
	}
	return frame(parts...)
}

func frameList(list []json.RawMessage) []byte {
	parts := make([][]byte, len(list))
	for i, raw := range list {
		parts[i] = raw
	}
	return frame(parts...)
}

func unframeOffer(data []byte) (inventory.Offer, error) {
	parts, err := unframe(data)
	if err != nil {
		return inventory.Offer{}, err
	}
	if len(parts) < offerParts || len(parts) > offerParts+1 || string(parts[0]) != offerVersion {
		return inventory.Offer{}, errFrame
	}
	var o inventory.Offer
	if len(parts) > offerParts {
		o.Stale = string(parts[offerParts])
	}
	tools, err := unframe(parts[1])
	if err != nil || len(tools)%3 != 0 {
		return inventory.Offer{}, errFrame
	}
	if len(tools) > 0 {
		o.Tools = make([]inventory.Tool, 0, len(tools)/3)
	}
	for ; len(tools) > 0; tools = tools[3:] {
		o.Tools = append(o.Tools, inventory.Tool{
			Definition: tool.Definition{Name: string(tools[0]), JSON: tools[2]}, Pin: string(tools[1]),
		})
	}
	for i, list := range []*[]json.RawMessage{&o.Prompts, &o.Resources, &o.Templates} {
		raw, err := unframe(parts[2+i])
		if err != nil {
			return inventory.Offer{}, err
		}
		for _, r := range raw {
			*list = append(*list, r)
		}
	}
	for i, member := range []*json.RawMessage{&o.Capabilities, &o.Info, &o.Instructions} {
		if len(parts[5+i]) > 0 {
			*member = parts[5+i]
		}
	}
	return o, nil
}

// framePins returns nil for pins that were never taken.
func framePins(pins map[string]approval.Pin) []byte {
	if pins == nil {
		return nil
	}
	parts := make([][]byte, 0, 1+4*len(pins))
	parts = append(parts, []byte(pinsVersion))
	for name, pin := range pins {
		var expires []byte
		if !pin.Expires.IsZero() {
			expires = []byte(pin.Expires.UTC().Format(time.RFC3339Nano))
		}
		parts = append(parts, []byte(name), []byte(pin.Digest), expires, pin.JSON)
	}
	return frame(parts...)
}

func unframePins(data []byte) (map[string]approval.Pin, error) {
	if data == nil {
		return nil, nil
	}
	parts, err := unframe(data)
	if err != nil {
		return nil, err
	}
	if len(parts)%4 != 1 || string(parts[0]) != pinsVersion {
		return nil, errFrame
	}
	parts = parts[1:]
	pins := make(map[string]approval.Pin, len(parts)/4)
	for ; len(parts) > 0; parts = parts[4:] {
		pin := approval.Pin{Digest: string(parts[1]), JSON: parts[3]}
		if len(parts[2]) > 0 {
			if pin.Expires, err = time.Parse(time.RFC3339Nano, string(parts[2])); err != nil {
				return nil, fmt.Errorf("%w: %w", errFrame, err)
			}
		}
		pins[string(parts[0])] = pin
	}
	return pins, nil
}
