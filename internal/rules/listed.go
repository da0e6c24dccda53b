package rules

import "regexp"

// A Listing is the tools of a server that may be called, by their names.
type Listing struct {
	Server string
	// Tools may be none at all.
	Tools []string
	// Place is where the list was written, "file:line", or "".
	Place string
}

// Listed returns rules by which those servers have the tools of their lists
// only. They say nothing of other servers. A name stands for itself, in its
// case: it is no pattern.
func Listed(lists ...Listing) (Rules, error) {
	var all Rules
	for _, list := range lists {
		enabled, disabled := true, false
		kept := []Rule{{Pattern: []string{"*"}, Server: list.Server, Enabled: &disabled, Place: list.Place}}
		var patterns []string
		for _, name := range list.Tools {
			patterns = append(patterns, "/^"+regexp.QuoteMeta(name)+"$/")
		}
		if len(patterns) > 0 {
			kept = append([]Rule{{Pattern: patterns, Server: list.Server, Enabled: &enabled, Place: list.Place}}, kept...)
		}
		rules, err := Compile(kept, Default{})
		if err != nil {
			return Rules{}, err
		}
		rules.layers[0].only = list.Server
		all = all.Narrowed(rules)
	}
	return all, nil
}
