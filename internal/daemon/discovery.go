package daemon

import (
	"go.yaml.in/yaml/v3"

	"github.com/dockgate/dockgate/internal/rules"
)

// Discovery is the part of a configuration that says which tools there are to
// be found and called.
type Discovery struct {
	// ToolRules is as it is written, see [rules.Parse].
	ToolRules yaml.Node `yaml:"toolRules"`
	// Rules is what ToolRules says.
	Rules rules.Rules `yaml:"-"`
}

// compile reads what is in a format of its own; path is the file. The error is
// [rules.Problems].
func (d *Discovery) compile(path string) (err error) {
	d.Rules, err = rules.Parse(path, "discovery.toolRules", d.ToolRules)
	return err
}
