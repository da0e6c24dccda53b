package jsonrpc

import "encoding/json"

// With returns object with the member called name set to value, in the place
// where it stood or else at the end, and every other byte as it was written.
// Repeats of the member are dropped. The error is a [*SyntaxError] if object
// is not one.
func With(object json.RawMessage, name string, value json.RawMessage) (json.RawMessage, error) {
	quoted, err := json.Marshal(name)
	if err != nil {
		return nil, err
	}
	set := make([]byte, 0, len(object)+len(quoted)+len(value)+2)
	set = append(set, '{')
	add := func(parts ...[]byte) {
		if len(set) > 1 {
			set = append(set, ',')
		}
		for _, part := range parts {
			set = append(set, part...)
		}
	}
	done := false
	for m, err := range Members(object) {
		switch {
		case err != nil:
			return nil, err
		case string(m.Name) != name:
			add(m.Raw)
		case !done:
			add(quoted, []byte(":"), value)
			done = true
		}
	}
	if !done {
		add(quoted, []byte(":"), value)
	}
	return append(set, '}'), nil
}

// Lookup returns the value of a member of object, the last one if it is
// repeated, or nil if there is none or object is not an object.
func Lookup(object json.RawMessage, name string) json.RawMessage {
	var value json.RawMessage
	for m, err := range Members(object) {
		if err != nil {
			return nil
		}
		if string(m.Name) == name {
			value = m.Value
		}
	}
	return value
}
