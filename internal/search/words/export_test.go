package words

import (
	"fmt"
	"strings"
)

// Problems returns what is wrong in the files.
func Problems() []string {
	var all []string
	seen := make(map[string]bool)
	check := func(concept string, members []string, least int) {
		if len(members) < least {
			all = append(all, concept+": stands alone")
		}
		for _, m := range members {
			if strings.Count(m, "_") >= MaxPhrase || m != strings.ToLower(m) {
				all = append(all, fmt.Sprintf("%s: %s", concept, m))
			}
		}
	}
	for line := range strings.Lines(synonyms) {
		if members := strings.Fields(line); len(members) > 0 && members[0] != "//" {
			check(members[0], members, 2)
		}
	}
	for line := range strings.Lines(topics) {
		name, members, ok := strings.Cut(line, ":")
		if !ok || seen[name] {
			all = append(all, "topic: "+line)
		}
		seen[name] = true
		check(name, strings.Fields(members), 3)
	}
	return all
}
