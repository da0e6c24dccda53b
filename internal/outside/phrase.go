package outside

import (
	"regexp"
	"slices"
	"strings"
)

// stateOnly are the commands that need nothing but the state folder.
func stateOnly() []string {
	return []string{"approve", "approvals", "audit", "catalog", "config", "deny", "import", "inspect", "list", "login", "logout", "logs", "ls", "revoke", "rm", "search", "token", "tools"}
}

// needsEngine are the commands that need the engine, or look at the host.
func needsEngine() []string {
	return []string{"add", "connect", "demo", "doctor", "execute", "explain", "images", "plan", "ps", "serve", "stats", "stop", "update"}
}

// Phrase returns a text in which the commands of dockgate are those that a
// person types on the host.
func (c Container) Phrase(text string) string {
	verbs := strings.Join(slices.Concat(stateOnly(), needsEngine()), "|")
	return regexp.MustCompile(`(^|[^\w/.-])dockgate (`+verbs+`)\b`).ReplaceAllStringFunc(text, func(found string) string {
		before, verb, _ := strings.Cut(found, "dockgate ")
		return before + c.line(verb) + " " + verb
	})
}

// Knows reports whether Phrase rewrites a command.
func Knows(command string) bool {
	return slices.Contains(stateOnly(), command) || slices.Contains(needsEngine(), command)
}

// line returns how a command is run on the host.
func (c Container) line(verb string) string {
	if c.Command != "" {
		return c.Command
	}
	words := []string{"docker", "run", "-it", "--rm"}
	if slices.Contains(needsEngine(), verb) {
		words = append(words, c.around()...)
	}
	words = append(words, c.itself()...)
	for i, word := range words {
		if strings.ContainsAny(word, " '\"$\\") {
			words[i] = "'" + strings.ReplaceAll(word, "'", `'\''`) + "'"
		}
	}
	return strings.Join(words, " ")
}
