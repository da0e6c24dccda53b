package policy

import (
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/docker/go-units"
	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/catalog/document"
	"github.com/dockgate/dockgate/internal/fleet"
)

// DefaultMaxRunning is how many servers run for one caller at a time.
const DefaultMaxRunning = 5

// DefaultMaxRemote is how many remote servers are connected for one caller at a
// time.
const DefaultMaxRemote = 2

// Quotas bound what runs for one caller at a time. A zero bound is not set.
type Quotas struct {
	// MaxRunning is how many servers run; [DefaultMaxRunning] if not set.
	MaxRunning fleet.Bound
	// MaxMemoryPerServer is the most memory that a server may ask for, in bytes.
	MaxMemoryPerServer fleet.Bound
	// MaxTotalMemory is the sum of the memory limits of what runs, in bytes.
	MaxTotalMemory fleet.Bound
	// MaxCall is how long any call takes at most, a [time.Duration].
	MaxCall fleet.Bound
	// MaxRemote is how many servers that somebody else runs are connected;
	// [DefaultMaxRemote] if not set.
	MaxRemote fleet.Bound
}

// A quota is one of them, with its names in files: ours, and the one that
// mcp-limits.yaml has.
type quota struct {
	name, seed string
	bound      *fleet.Bound
	parse      func(text string) (int64, error)
}

func (q *Quotas) each() []quota {
	return []quota{
		{"max_running", "max_concurrent_mcps", &q.MaxRunning, parseCount},
		{"max_memory_per_server", "max_memory_per_mcp", &q.MaxMemoryPerServer, parseSize},
		{"max_total_memory", "", &q.MaxTotalMemory, parseSize},
		{"max_call", "max_execution_time", &q.MaxCall, parseDuration},
		{"max_remote", "max_gateway_mcps", &q.MaxRemote, parseCount},
	}
}

// UnmarshalYAML reads quotas under either of their names. It returns every
// mistake at once.
func (q *Quotas) UnmarshalYAML(node *yaml.Node) error {
	problems := q.read("quotas", node)
	if len(problems) == 0 {
		return nil
	}
	texts := make([]string, len(problems))
	for i, problem := range problems {
		texts[i] = fmt.Sprintf("line %d: %s", problem.line, problem)
	}
	return &yaml.TypeError{Errors: texts}
}

// read reads the quotas of a field, and returns what is wrong with them.
func (q *Quotas) read(field string, node *yaml.Node) (problems []misfit) {
	if node = resolved(node); node.Kind != yaml.MappingNode {
		return []misfit{{node.Line, field, "is " + document.Describe(node) + ", want a mapping"}}
	}
	seen := map[*fleet.Bound]bool{}
	for i := 0; i+1 < len(node.Content); i += 2 {
		key, value := node.Content[i], resolved(node.Content[i+1])
		if err := q.set(key.Value, value, seen); err != nil {
			problems = append(problems, misfit{key.Line, field + "." + key.Value, err.Error()})
		}
	}
	return problems
}

func (q *Quotas) set(name string, value *yaml.Node, seen map[*fleet.Bound]bool) error {
	if value.Kind != yaml.ScalarNode {
		return fmt.Errorf("is %s, want a single value", document.Describe(value))
	}
	for _, one := range q.each() {
		if name != one.name && (name != one.seed || one.seed == "") {
			continue
		}
		if seen[one.bound] {
			return fmt.Errorf("is set twice; %s and %s are the same", one.name, one.seed)
		}
		seen[one.bound] = true
		var err error
		one.bound.Max, err = one.parse(value.Value)
		return err
	}
	return errors.New("is no quota; known: max_running, max_memory_per_server, max_total_memory, max_call, max_remote")
}

// The least of what a quota can be; zero would mean that there is none.

func parseCount(text string) (int64, error) {
	n, err := strconv.ParseInt(text, 10, 32)
	if err != nil || n < 1 {
		return 0, fmt.Errorf("is %q, want a whole number above 0", text)
	}
	return n, nil
}

// leastMemory is what engines take.
const leastMemory = 6 << 20

func parseSize(text string) (int64, error) {
	n, err := units.RAMInBytes(text)
	if err != nil || n < leastMemory {
		return 0, fmt.Errorf("is %q, want a size of 6MB or more, such as 500MB or 2GB", text)
	}
	return n, nil
}

func parseDuration(text string) (int64, error) {
	d, err := time.ParseDuration(text)
	if err != nil || d <= 0 {
		return 0, fmt.Errorf("is %q, want a duration above 0, such as 30s or 5m", text)
	}
	return int64(d), nil
}

// from says where the quotas were set.
func (q Quotas) from(place string) Quotas {
	for _, one := range q.each() {
		if one.bound.Max > 0 {
			one.bound.Place = place
		}
	}
	return q
}

// LoweredBy returns the quotas with what others set lower, and the names of
// those that are not.
func (q Quotas) LoweredBy(others Quotas) (lowered Quotas, ignored []string) {
	theirs := others.each()
	for i, ours := range q.each() {
		their := *theirs[i].bound
		switch {
		case their.Max == 0:
		case ours.bound.Max == 0 || their.Max <= ours.bound.Max:
			*ours.bound = their
		default:
			ignored = append(ignored, ours.name)
		}
	}
	return q, ignored
}

// Or returns the quotas with those of others where they say nothing.
func (q Quotas) Or(others Quotas) Quotas {
	theirs := others.each()
	for i, ours := range q.each() {
		if ours.bound.Max == 0 {
			*ours.bound = *theirs[i].bound
		}
	}
	return q
}

// Fleet is the part of the quotas that the fleet keeps.
func (q Quotas) Fleet() fleet.Quota {
	return fleet.Quota{Running: q.MaxRunning, Memory: q.MaxTotalMemory, Remote: q.MaxRemote}
}

// Place returns where the quota of that name, one of ours, was set.
func (q Quotas) Place(name string) string {
	for _, one := range q.each() {
		if one.name == name {
			return one.bound.Place
		}
	}
	return ""
}

// ourName is our name of a quota that has another in some files.
func ourName(key string) string {
	for _, one := range new(Quotas).each() {
		if one.seed != "" && key == "quotas."+one.seed {
			return "quotas." + one.name
		}
	}
	return key
}
