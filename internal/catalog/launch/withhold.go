package launch

import (
	"bytes"
	"encoding/json"
	"fmt"
	"net/url"
	"regexp"
	"slices"
	"strconv"
	"strings"

	"github.com/dockgate/dockgate/internal/catalog"
)

// arguments converts arguments. A secret has no place in one, for whoever sees
// the processes of the machine sees it: what looks like one becomes a setting
// that is asked for, and the value stays where it is.
func (l *launcher) arguments(raw []string) []string {
	return l.withoutSecrets(raw, func(string) bool { return false }, l.text)
}

// withoutSecrets converts the arguments that are no secrets by the way of
// others; one that stays is none, whatever it looks like.
func (l *launcher) withoutSecrets(raw []string, stays func(string) bool, others func(string) string) []string {
	var converted []string
	for i, arg := range raw {
		name, value, assigned := strings.Cut(arg, "=")
		isFlag := strings.HasPrefix(arg, "-")
		switch {
		case stays(arg):
			converted = append(converted, others(arg))
		case assigned && flagName.MatchString(name) && (carriesSecret(name, value) || isSecret(value)):
			converted = append(converted, name+"="+l.withheld(name, i))
		case i > 0 && !isFlag && flagName.MatchString(raw[i-1]) && strings.HasPrefix(raw[i-1], "-") && carriesSecret(raw[i-1], arg):
			converted = append(converted, l.withheld(raw[i-1], i))
		case isSecret(arg):
			converted = append(converted, l.withheld("argument-"+strconv.Itoa(i+1), i))
		default:
			converted = append(converted, others(arg))
		}
	}
	return converted
}

// withheld makes the setting for a value that is not copied, and returns the
// placeholder for it.
func (l *launcher) withheld(flag string, at int) string {
	base := notSetting.ReplaceAllString(strings.TrimLeft(flag, "-"), "_")
	name := base
	for n := 2; ; n++ {
		if _, taken := l.settings[name]; !taken && !bytes.Contains(l.Config, []byte(strconv.Quote(name))) {
			break
		}
		name = fmt.Sprintf("%s-%d", base, n)
	}
	l.settings[name] = property{
		Type: "string", Description: fmt.Sprintf("Argument %d; its value stands in %s, and is not copied from there", at+1, l.Origin.Catalog), required: true,
	}
	l.remark("argument %d looks like a secret, and is not copied: it is the setting %s, which is shown with the command; "+
		"if the server reads a variable instead, take the argument out and name a secret", at+1, name)
	return "{{config." + name + "}}"
}

// withoutValues puts ${VARIABLE} in the place of what looks like a secret in a
// URL's query. Where a secret cannot stand, the server is unsupported.
func (l *launcher) withoutValues(raw string) string {
	before, query, _ := strings.Cut(raw, "?")
	if isToken(before) {
		l.unsupported("has a secret in the path of its URL, where none can stand; give it in the query or in a header")
		return ""
	}
	query, fragment, _ := strings.Cut(query, "#")
	parameters := strings.Split(query, "&")
	for i, parameter := range parameters {
		name, value, _ := strings.Cut(parameter, "=")
		if refers(value) || !carriesSecret(name, value) && !isSecret(value) {
			continue
		}
		parameters[i] = name + "=${" + l.asked(name, "the parameter "+name+" of the URL") + "}"
	}
	if query = strings.Join(parameters, "&"); query != "" {
		before += "?" + query
	}
	if fragment != "" {
		before += "#" + fragment
	}
	return before
}

// asked makes a secret for a value of a server that is elsewhere, and returns
// its variable.
func (l *launcher) asked(name, what string) string {
	variable := strings.ToUpper(notSetting.ReplaceAllString(l.Name+"_"+name, "_"))
	variable = strings.ReplaceAll(variable, "-", "_")
	if variable[0] >= '0' && variable[0] <= '9' {
		variable = "_" + variable
	}
	l.secret(variable, variable, what+"; its value stands in "+l.Origin.Catalog+", and is not copied from there", true)
	return variable
}

var (
	flagName   = regexp.MustCompile(`^-{0,2}[A-Za-z][A-Za-z0-9_.-]*$`)
	secretFlag = regexp.MustCompile(`(?i)(^|[._-])(token|secret|passw(or)?d|passphrase|pwd|pat|authorization|bearer|apikey|dsn|cookie)$|` +
		`(^|[._-])(api|access|secret|private|auth|account|license|subscription|admin|role|encryption|signing|master)[._-]?key$|^-*key$`)
	switchName = regexp.MustCompile(`(?i)^-*(no|use|enable|disable|allow|skip|require|validate|with|without)[_-]`)
	filePath   = regexp.MustCompile(`^(/|~|\.{1,2}/|\\|[A-Za-z]:[\\/])`)
	number     = regexp.MustCompile(`^[0-9.]{1,9}$`)
)

// carriesSecret reports that a flag or parameter is for a secret by its name,
// and its value is not plainly something else.
func carriesSecret(name, value string) bool {
	name = camel.ReplaceAllString(name, "${1}_${2}")
	switch {
	case !secretFlag.MatchString(name) || switchName.MatchString(name):
		return false
	case value == "" || refers(value) || filePath.MatchString(value):
		return false
	case slices.Contains([]string{"true", "false", "none", "null"}, strings.ToLower(value)):
		return false
	}
	return !number.MatchString(value) || !strings.HasSuffix(strings.ToLower(name), "token")
}

var (
	token = regexp.MustCompile(`(^|[^A-Za-z0-9])(sk-[A-Za-z0-9_-]{12,}|[sr]k_(live|test)_[A-Za-z0-9]{8,}|gh[opsur]_[A-Za-z0-9]{8,}|github_pat_[A-Za-z0-9_]{12,}|` +
		`glpat-[A-Za-z0-9_-]{12,}|xox[abeprs]-[A-Za-z0-9-]{8,}|xapp-[A-Za-z0-9-]{12,}|A[KS]IA[0-9A-Z]{12,}|AIza[A-Za-z0-9_-]{20,}|npm_[A-Za-z0-9]{20,}|` +
		`hf_[A-Za-z0-9]{20,}|fc-[0-9a-f]{20,}|tvly-[A-Za-z0-9-]{12,}|lin_api_[A-Za-z0-9]{12,}|ntn_[A-Za-z0-9]{20,}|eyJ[A-Za-z0-9_-]{10,}\.[A-Za-z0-9_-]{10,})`)
	// userinfo is a password before a host: in a URL, or as MySQL's drivers take it.
	userinfo = regexp.MustCompile(`://[^/?#\s:@]*:[^/\s@]+@|^[^\s:@/]+:[^\s@]+@(tcp|unix)?\(`)
	// assignment is a parameter of a URL or a connection string.
	assignment = regexp.MustCompile(`(?:^|[?&;\s])([A-Za-z][A-Za-z0-9_.-]*)\s*=\s*([^&;#\s]+)`)
	header     = regexp.MustCompile(`^\s*([A-Za-z][A-Za-z0-9-]*)\s*:\s*\S`)
	scheme     = regexp.MustCompile(`(?i)^(bearer|basic) +\S{6,}`)
)

// isSecret reports that a text has a secret in it, as far as its form tells.
// What it refers to is none: that is not in it.
func isSecret(text string) bool {
	text = reference.ReplaceAllString(text, "")
	if isToken(text) || userinfo.MatchString(text) || scheme.MatchString(text) {
		return true
	}
	for _, m := range assignment.FindAllStringSubmatch(text, -1) {
		if value, err := url.QueryUnescape(m[2]); err == nil && carriesSecret(m[1], value) {
			return true
		}
	}
	if m := header.FindStringSubmatch(text); m != nil && !strings.Contains(text, "://") {
		_, value, _ := strings.Cut(text, ":")
		value = scheme.ReplaceAllString(strings.TrimSpace(value), "x")
		return carriesSecret(m[1], strings.TrimSpace(strings.TrimPrefix(strings.TrimPrefix(value, "Bearer"), "Basic")))
	}
	var members map[string]any
	return strings.HasPrefix(text, "{") && json.Unmarshal([]byte(text), &members) == nil && holdsSecret(members)
}

// holdsSecret reports that an object has a secret at any depth.
func holdsSecret(members map[string]any) bool {
	for name, member := range members {
		switch value := member.(type) {
		case string:
			if carriesSecret(name, value) || isSecret(value) {
				return true
			}
		case map[string]any:
			if holdsSecret(value) {
				return true
			}
		}
	}
	return false
}

// LooksSecret reports that a text has a secret in it, as far as its form tells.
func LooksSecret(text string) bool { return isSecret(text) }

// isToken reports that a text has a token of a known form. A path is none, and
// neither is what has no digit.
func isToken(text string) bool {
	return !filePath.MatchString(text) && slices.ContainsFunc(token.FindAllString(text, -1), func(found string) bool {
		return strings.ContainsAny(found[1:], "0123456789")
	})
}

// masked is a text that can be shown: passwords in URLs and tokens are left out.
func masked(text string) string {
	text = userinfo.ReplaceAllString(text, "://…@")
	return token.ReplaceAllString(text, "${1}…")
}

// holdsCredentials reports that where a package comes from has a secret in it.
func holdsCredentials(p catalog.Program) bool {
	return slices.ContainsFunc(append([]string{p.Package}, p.With...), isSecret)
}
