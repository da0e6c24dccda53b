package inventory

import "slices"

// Tool returns the tool with a name.
func (o Offer) Tool(name string) (Tool, bool) {
	i := slices.IndexFunc(o.Tools, func(t Tool) bool { return t.Name == name })
	if i < 0 {
		return Tool{}, false
	}
	return o.Tools[i], true
}

// Changed returns a channel that is closed when an offer has changed since.
func (i *Inventory) Changed() <-chan struct{} {
	i.mu.RLock()
	defer i.mu.RUnlock()
	return i.changed
}
