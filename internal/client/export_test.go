package client

import (
	"maps"
	"slices"
)

// Put is put, for tests.
func (c Client) Put(text []byte, command Command) ([]byte, error) { return c.put(text, command) }

// Take is take of the gateway's entry, for tests.
func (c Client) Take(text []byte) ([]byte, error) { return c.take(text, Entry) }

// Rest is rest, for tests.
func (c Client) Rest(text []byte) (map[string]any, error) { return c.rest(text, Entry) }

// There moves every other server out of a text and back again, and returns all
// that the text says then.
func (c Client) There(text []byte) (map[string]any, error) {
	whole, err := c.Format.Syntax().Decode(text)
	if err != nil {
		return nil, err
	}
	servers, err := c.servers(whole)
	if err != nil {
		return nil, err
	}
	left, gone, err := c.move(text, slices.Sorted(maps.Keys(servers)), nil)
	for _, m := range gone {
		if err == nil {
			left, err = c.putBack(left, m.Name, m.Raw)
		}
	}
	if err != nil {
		return nil, err
	}
	return c.Format.Syntax().Decode(left)
}

// Whole is all that a text says.
func (c Client) Whole(text []byte) (map[string]any, error) { return c.Format.Syntax().Decode(text) }
