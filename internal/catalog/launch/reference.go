package launch

import (
	"regexp"
	"slices"
	"strings"

	"github.com/dockgate/dockgate/internal/catalog"
)

// A piece of a text is literal, or refers to something.
type piece struct {
	literal string
	// kind is "env", "input" or "folder"; empty for a literal.
	kind, name string
	// fallback stands in for a variable that is not set.
	fallback    string
	hasFallback bool
}

var reference = regexp.MustCompile(`\$\{([A-Za-z][A-Za-z0-9]*:)?([A-Za-z_][A-Za-z0-9_.-]*)(:-([^}]*))?\}`)

// pieces splits a text at its references: ${VAR}, ${VAR:-default}, ${env:VAR},
// ${input:id}, and the folders ${workspaceFolder}, ${userHome} and the like.
func pieces(text string) []piece {
	var all []piece
	rest := text
	for rest != "" {
		at := reference.FindStringSubmatchIndex(rest)
		if at == nil {
			break
		}
		group := func(i int) string {
			if at[2*i] < 0 {
				return ""
			}
			return rest[at[2*i]:at[2*i+1]]
		}
		p := piece{kind: strings.TrimSuffix(group(1), ":"), name: group(2), fallback: group(4), hasFallback: at[6] >= 0}
		if p.kind == "" {
			p.kind = "env"
			if slices.Contains(folders(), p.name) {
				p.kind = "folder"
			}
		}
		if at[0] > 0 {
			all = append(all, piece{literal: rest[:at[0]]})
		}
		if p.kind == "env" || p.kind == "input" || p.kind == "folder" {
			all = append(all, p)
		} else {
			all = append(all, piece{literal: rest[at[0]:at[1]]})
		}
		rest = rest[at[1]:]
	}
	if rest != "" || len(all) == 0 {
		all = append(all, piece{literal: rest})
	}
	return all
}

func folders() []string {
	return []string{"workspaceFolder", "workspaceRoot", "userHome", "HOME", "PWD"}
}

func refers(text string) bool {
	return slices.ContainsFunc(pieces(text), func(p piece) bool { return p.kind != "" })
}

// folder returns the folder that a name stands for.
func (l *launcher) folder(name string) string {
	switch name {
	case "userHome", "HOME":
		return l.around.Home
	}
	if l.command.Dir != "" {
		return l.command.Dir
	}
	return l.around.Dir
}

// text converts a text that a person may see, such as an argument: what it
// refers to becomes a setting.
func (l *launcher) text(raw string) string {
	var b strings.Builder
	for _, p := range pieces(raw) {
		switch p.kind {
		case "":
			if strings.Contains(p.literal, "{{") {
				l.unsupported("uses {{ in %q, which begins a placeholder here", raw)
			}
			b.WriteString(p.literal)
		case "folder":
			folder := l.folder(p.name)
			if folder == "" {
				l.unsupported("uses ${%s}, which is not known here", p.name)
			}
			b.WriteString(folder)
		case "input":
			b.WriteString(l.input(p))
		default:
			b.WriteString(l.setting(p.name, property{
				Type: "string", Description: "In place of the variable " + p.name + " of the environment", required: !p.hasFallback,
			}, p.fallback))
		}
	}
	return b.String()
}

var notSetting = regexp.MustCompile(`[^A-Za-z0-9_-]`)

// setting makes a setting, and returns the placeholder for it.
func (l *launcher) setting(name string, p property, fallback string) string {
	name = notSetting.ReplaceAllString(name, "_")
	if secretive(name) {
		l.remark("the setting %s looks like a secret, and is shown with the command: prefer a variable", name)
	}
	if strings.ContainsAny(fallback, "|{}") {
		fallback = ""
	}
	if _, known := l.settings[name]; !known {
		l.settings[name] = p
	}
	if fallback != "" {
		return "{{config." + name + "|or:" + fallback + "}}"
	}
	return "{{config." + name + "}}"
}

// input makes a setting of what the client would ask for.
func (l *launcher) input(p piece) string {
	in := l.command.Inputs[p.name]
	if in.Secret {
		l.remark("the input %s is a secret, and is shown with the command: prefer a variable", p.name)
	}
	return l.setting(p.name, property{
		Type: "string", Description: in.Description, Enum: in.Options, required: in.Default == "" && !in.Optional,
	}, in.Default)
}

var secretWords = regexp.MustCompile(`(?i)(^|[_-])(token|secrets?|passw(or)?d|passphrase|pwd|pat|auth|authorization|credentials?|cookie|apikey|key|dsn)([_-]|$)|api_?key|access_?key`)

// secretive reports that a name is that of a secret.
func secretive(name string) bool {
	split := camel.ReplaceAllString(name, "${1}_${2}")
	return secretWords.MatchString(split)
}

var camel = regexp.MustCompile(`([a-z0-9])([A-Z])`)

// variable converts a variable of a container. A value that refers to the
// environment is a secret, and so is a literal one whose name or form says it
// is; that one stays where it is. What else a client asks for is a setting.
func (l *launcher) variable(name, raw string) {
	parts := pieces(raw)
	whole := len(parts) == 1
	literal := isSecret(raw) || parts[0].kind == "" && whole && secretive(name)
	hidden := slices.ContainsFunc(parts, func(p piece) bool { return p.kind == "env" || p.kind == "input" && l.command.Inputs[p.name].Secret })
	switch {
	case raw == "" || l.has(name):
	case whole && parts[0].kind == "env":
		l.secret(name, parts[0].name, "", !parts[0].hasFallback)
	case whole && parts[0].kind == "input" && hidden:
		l.secret(name, name, l.command.Inputs[parts[0].name].Description, !l.command.Inputs[parts[0].name].Optional)
	case literal:
		l.secret(name, name, "its value stands in "+l.Origin.Catalog+", and is not copied from there", true)
	case hidden:
		l.composed(name, parts)
	case slices.ContainsFunc(parts, func(p piece) bool { return p.kind != "" }):
		l.Env = append(l.Env, catalog.Variable{Name: name, Value: l.text(raw)})
	case strings.Contains(raw, "{{"):
		l.remark("the variable %s is left out: its value holds {{, which begins a placeholder here", name)
	default:
		l.Env = append(l.Env, catalog.Variable{Name: name, Value: raw})
	}
}

// NamesFile reports that the value of a variable is the path of a file with
// credentials.
func NamesFile(variable string) bool {
	return variable == "GOOGLE_CREDENTIALS" || variable == "GOOGLE_APPLICATION_CREDENTIALS"
}

// has reports that a variable is set already: the first one counts.
func (l *launcher) has(name string) bool {
	return slices.ContainsFunc(l.Env, func(v catalog.Variable) bool { return v.Name == name }) ||
		slices.ContainsFunc(l.Secrets, func(s catalog.Secret) bool { return s.Env == name })
}

// composed converts a value with secrets in it; what else it refers to becomes
// a secret too, so that no setting stands beside one.
func (l *launcher) composed(name string, parts []piece) {
	if slices.ContainsFunc(parts, func(p piece) bool { return strings.Contains(p.literal, "{{") }) {
		l.remark("the variable %s is left out: its value holds {{, which begins a placeholder here", name)
		return
	}
	l.Env = append(l.Env, catalog.Variable{Name: name, Value: l.hidden(parts)})
}

// hidden writes parts with a secret for each that is not literal.
func (l *launcher) hidden(parts []piece) string {
	var b strings.Builder
	for _, p := range parts {
		switch p.kind {
		case "":
			b.WriteString(p.literal)
		case "folder":
			b.WriteString(l.folder(p.name))
		default:
			variable := strings.ToUpper(notSetting.ReplaceAllString(strings.ReplaceAll(p.name, "-", "_"), "_"))
			if p.kind == "env" {
				variable = p.name
			}
			l.secret(variable, variable, l.command.Inputs[p.name].Description, !p.hasFallback && !l.command.Inputs[p.name].Optional)
			b.WriteString("${" + variable + "}")
		}
	}
	return b.String()
}

// secret adds a secret for a variable; from is what the user sets.
func (l *launcher) secret(env, from, instructions string, required bool) { //nolint:revive // a field of the secret
	if l.has(env) {
		return
	}
	s := catalog.Secret{Name: l.Name + "." + strings.ToLower(env), Env: env, Required: required, File: NamesFile(env), Instructions: instructions}
	if from != env {
		s.From = from
	}
	l.Secrets = append(l.Secrets, s)
}

// variables converts what the client would set.
func (l *launcher) variables() {
	for _, v := range l.command.Env {
		l.variable(v.Name, v.Value)
	}
}

// remote converts a server that is elsewhere.
func (l *launcher) remote(remote catalog.Remote) {
	made := catalog.Remote{URL: l.hidden(pieces(l.withoutValues(remote.URL))), Transport: remote.Transport}
	for name, value := range remote.Headers {
		if made.Headers == nil {
			made.Headers = make(map[string]string)
		}
		if refers(value) && !isSecret(value) {
			made.Headers[name] = l.hidden(pieces(value))
			continue
		}
		if secretive(name) || isSecret(value) {
			value = "${" + l.asked(name, "the header "+name) + "}"
		}
		if strings.Contains(value, "{{") {
			l.unsupported("uses {{ in the header %s, which begins a placeholder here", name)
		}
		made.Headers[name] = value
	}
	l.Remote = &made
}

// Variables fills in the variables of a container that no command line brings:
// those that refer to the environment, or whose names say so, become secrets.
func Variables(server catalog.Server, variables []catalog.Variable, around catalog.Surroundings) catalog.Server {
	l := newLauncher(server, Command{Env: variables}, around)
	l.variables()
	return l.Server
}

// Secretive reports that a name is that of a secret, as far as names tell.
func Secretive(name string) bool { return secretive(name) }
