package client

import (
	"errors"
	"fmt"
	"reflect"

	"github.com/dockgate/dockgate/internal/client/section"
)

// look returns the entry of a name in a text, nil if there is none.
func (c Client) look(text []byte, name string) (any, error) {
	whole, err := c.Format.Syntax().Decode(text)
	if err != nil {
		return nil, err
	}
	servers, err := c.servers(whole)
	return servers[name], err
}

func (c Client) servers(whole map[string]any) (map[string]any, error) {
	found := whole[c.Section]
	servers, ok := found.(map[string]any)
	if !ok && found != nil {
		return nil, &section.Problem{Text: fmt.Sprintf("%s: want a mapping of servers", c.Section)}
	}
	return servers, nil
}

// put returns a text with the entry for a command.
func (c Client) put(text []byte, command Command) ([]byte, error) {
	return c.putFields(text, c.shape.fields(command))
}

// putFields returns a text with an entry of some fields.
func (c Client) putFields(text []byte, fields []section.Field) ([]byte, error) {
	if _, err := c.look(text, Entry); err != nil {
		return nil, err
	}
	changed, err := c.Format.Syntax().Put(text, c.Section, Entry, fields)
	if err != nil {
		return nil, err
	}
	if err := c.compare(text, changed, Entry); err != nil {
		return nil, err
	}
	if entry, err := c.look(changed, Entry); err != nil || !has(entry, fields) {
		return nil, &section.Problem{Text: "the entry cannot be put in where it would be read"}
	}
	return changed, nil
}

// take returns a text without an entry, if it has it.
func (c Client) take(text []byte, name string) ([]byte, error) {
	entry, err := c.look(text, name)
	if err != nil || entry == nil {
		return text, err
	}
	changed, err := c.Format.Syntax().Take(text, c.Section, name)
	if err != nil {
		return nil, err
	}
	if err := c.compare(text, changed, name); err != nil {
		return nil, err
	}
	if entry, err := c.look(changed, name); err != nil || entry != nil {
		return nil, &section.Problem{Text: "the entry cannot be taken out without touching others"}
	}
	return changed, nil
}

// putBack returns a text with an entry as it was, if it has none of its name.
func (c Client) putBack(text []byte, name, raw string) ([]byte, error) {
	entry, err := c.look(text, name)
	if err != nil || entry != nil {
		return text, err
	}
	changed, err := c.Format.Syntax().PutRaw(text, c.Section, name, raw)
	if err != nil {
		return nil, err
	}
	if err := c.compare(text, changed, name); err != nil {
		return nil, err
	}
	if entry, err := c.look(changed, name); err != nil || entry == nil {
		return nil, &section.Problem{Text: fmt.Sprintf("%s cannot be put back where it would be read", name)}
	}
	return changed, nil
}

// compare returns an error if two texts differ in more than an entry.
func (c Client) compare(before, after []byte, name string) error {
	was, err := c.rest(before, name)
	if err != nil {
		return err
	}
	is, err := c.rest(after, name)
	if err != nil {
		return &section.Problem{Text: fmt.Sprintf("%s: is written in a way that cannot be changed here: %v", c.Section, err)}
	}
	if !reflect.DeepEqual(was, is) {
		return &section.Problem{Text: c.Section + ": is written in a way that cannot be changed here without touching other entries"}
	}
	return nil
}

// rest returns what a text says of everything but an entry.
func (c Client) rest(text []byte, name string) (map[string]any, error) {
	whole, err := c.Format.Syntax().Decode(text)
	if err != nil {
		return nil, err
	}
	servers, err := c.servers(whole)
	delete(servers, name)
	if len(servers) == 0 {
		delete(whole, c.Section)
	}
	return whole, err
}

// lineIn returns the line that an error names; 0 if it names none.
func lineIn(err error) int {
	var problem *section.Problem
	if errors.As(err, &problem) {
		return problem.Line
	}
	return 0
}
