package client

// Put is put, for tests.
func (c Client) Put(text []byte, command Command) ([]byte, error) { return c.put(text, command) }

// Take is take, for tests.
func (c Client) Take(text []byte) ([]byte, error) { return c.take(text) }

// Rest is rest, for tests.
func (c Client) Rest(text []byte) (map[string]any, error) { return c.rest(text) }
