package test_test

import (
	"bytes"
	"encoding/json"
	"errors"
	"io"
	"os"
	"os/exec"
	"slices"
	"strconv"
	"strings"
	"testing"
)

const module = "github.com/dockgate/dockgate"

// floors is the order of the packages under internal: each imports lower
// floors only. A package below one of these (catalog/compose, say) stands on
// the floor of its room, and may import the room.
func floors() [][]string {
	return [][]string{
		0:  {"tool", "secret", "principal", "jsonrpc", "relay", "outside"},
		1:  {"catalog", "client", "era", "rules", "schema", "search"},
		2:  {"sandbox"},
		3:  {"approval", "audit", "access", "inventory", "login"},
		4:  {"docker", "plan", "upstream", "remote", "toolbox"},
		5:  {"fleet"},
		6:  {"call"},
		7:  {"meta"},
		8:  {"gateway"},
		9:  {"endpoint", "policy", "store"},
		10: {"setup", "image", "presence"},
		11: {"daemon"},
		12: {"doctor"},
	}
}

// storeys is the order of the packages of a room with walls: each imports lower
// storeys of it only. The room itself is one of them. What is for tests stands
// outside.
func storeys() map[string][][]string {
	return map[string][][]string{
		"docker": {
			0: {"docker/stream", "docker/logfile", "docker/reach"},
			1: {"docker/owner", "docker/pull"},
			2: {"docker/install", "docker/twin"},
			3: {"docker"},
		},
	}
}

// inner are the packages below a room that only the room may import.
func inner() []string {
	return []string{"client/section", "docker/stream", "gateway/park", "gateway/wire", "remote/mirror", "search/near", "search/text", "search/words"}
}

// stdOnly are the packages that import nothing but the standard library.
func stdOnly() []string {
	return []string{"tool", "principal", "jsonrpc", "outside", "docker/stream", "docker/logfile"}
}

// owners are the rooms that alone may import the modules below a path. Folders
// outside of internal are written with a slash.
func owners() map[string][]string {
	return map[string][]string{
		"github.com/moby/moby/": {"docker", "/test"},
		// remote takes the SDK's client transports, in remote/door.
		"github.com/modelcontextprotocol/go-sdk/": {"gateway", "endpoint", "access", "login", "remote", "/images", "/test"},
		"modernc.org/":                 {"store"},
		"github.com/pressly/goose/":    {"store"},
		"github.com/compose-spec/":     {"secret", "catalog"},
		"github.com/tailscale/hujson":  {"catalog", "client"},
		"github.com/spf13/":            {"/cmd"},
		"github.com/schollz/":          {"/cmd"},
		"github.com/docker/cli/":       {"docker"},
		"github.com/kljensen/snowball": {"search"},
		"filippo.io/age":               {"login"},
		"github.com/zalando/":          {"login"},
		"github.com/pelletier/":        {"client"},
		"github.com/hashicorp/yamux":   {"relay"},
	}
}

// listed is what go list says of a package, its tests left out.
type listed struct {
	ImportPath string
	Imports    []string
}

func TestImports(t *testing.T) {
	seen := make(map[string]bool)
	for _, goos := range []string{"linux", "darwin", "windows"} {
		for _, pkg := range list(t, goos) {
			for _, problem := range judge(pkg) {
				if line := pkg.ImportPath + ": " + problem; !seen[line] {
					seen[line] = true
					t.Error(line)
				}
			}
		}
	}
}

// The table that the README shows is the one above.
func TestReadme(t *testing.T) {
	text, err := os.ReadFile("../README.md")
	if err != nil {
		t.Fatal(err)
	}
	_, table, _ := strings.Cut(string(text), "| floor | package | what it is |\n|---|---|---|\n")
	table, _, _ = strings.Cut(table, "\n\n")
	got := make([][]string, len(floors()))
	floor := 0
	for line := range strings.Lines(table) {
		cells := strings.Split(line, "|")
		if len(cells) < 4 {
			t.Fatalf("a row without three cells: %s", line)
		}
		if number := strings.TrimSpace(cells[1]); number != "" {
			if floor, err = strconv.Atoi(number); err != nil || floor >= len(got) {
				t.Fatalf("floor %s, want one below %d", number, len(got))
			}
		}
		for name := range strings.SplitSeq(cells[2], ",") {
			room, _, _ := strings.Cut(strings.Trim(name, " `"), "/")
			if !slices.Contains(got[floor], room) {
				got[floor] = append(got[floor], room)
			}
		}
	}
	for floor, want := range floors() {
		if rooms := slices.Sorted(slices.Values(got[floor])); !slices.Equal(rooms, slices.Sorted(slices.Values(want))) {
			t.Errorf("floor %d of the README has %q, want %q", floor, rooms, want)
		}
	}
}

func TestJudge(t *testing.T) {
	tests := []struct {
		pkg     string
		imports string
		want    string
	}{
		{"internal/tool", "encoding/json", ""},
		{"internal/tool", "golang.org/x/sync/errgroup", "is for the standard library only"},
		{"internal/tool", module + "/internal/sandbox", "imports sandbox (floor 2), which is not below floor 0"},
		{"internal/sandbox", module + "/internal/catalog", ""},
		{"internal/catalog", module + "/internal/rules", "imports rules (floor 1), which is not below floor 1"},
		{"internal/catalog/compose", module + "/internal/catalog", ""},
		{"internal/catalog/compose", module + "/internal/docker", "imports docker (floor 4), which is not below floor 1"},
		{"internal/fleet", module + "/internal/sandbox/sandboxtest", "imports internal/sandbox/sandboxtest, which is for tests"},
		{"internal/remote", module + "/internal/remote/mirror", ""},
		{"internal/fleet", module + "/internal/remote/mirror", "imports internal/remote/mirror, which is remote's own"},
		{"internal/daemon", module + "/internal/remote/door", ""},
		{"internal/fleet", module + "/cmd/dockgate", "imports cmd/dockgate, which is not below it"},
		{"internal/daemon", module + "/catalog", ""},
		{"internal/fleet", "github.com/moby/moby/client", "imports github.com/moby/moby/client, which only docker, /test may"},
		{"internal/docker", "github.com/moby/moby/client", ""},
		{"test/leftovers", "github.com/moby/moby/client", ""},
		{"internal/docker", module + "/internal/docker/owner", ""},
		{"internal/docker/owner", module + "/internal/docker/reach", ""},
		{"internal/docker/owner", module + "/internal/docker/pull", "imports internal/docker/pull (storey 1), which is not below storey 1"},
		{"internal/docker/owner", module + "/internal/docker", "imports internal/docker (storey 3), which is not below storey 1"},
		{"internal/docker/owner", module + "/internal/docker/dockertest", "imports internal/docker/dockertest, which is for tests"},
		{"internal/docker/dockertest", module + "/internal/docker", ""},
		{"internal/docker/logfile", "github.com/moby/moby/client", "is for the standard library only"},
		{"internal/docker/shed", "fmt", "has no storey; give it one here"},
		{"internal/image", module + "/internal/docker/pull", ""},
		{"internal/call", "github.com/modelcontextprotocol/go-sdk/mcp", "imports github.com/modelcontextprotocol/go-sdk/mcp, which only gateway, endpoint, access, login, remote, /images, /test may"},
		{"internal/helper", "fmt", "has no floor; give it one here"},
		{"internal", "fmt", "has no floor; give it one here"},
		{"catalog", "embed", ""},
		{"catalog", module + "/internal/catalog", "imports internal/catalog, and is data"},
		{"tools", "fmt", "is in no folder of the top level"},
		{"cmd/dockgate", module + "/internal/docker", ""},
		{"internal/gateway/gatewaytest", module + "/internal/store", ""},
	}
	for _, tt := range tests {
		got := strings.Join(judge(listed{ImportPath: module + "/" + tt.pkg, Imports: []string{tt.imports}}), "; ")
		if got != tt.want {
			t.Errorf("judge(%s imports %s) = %q, want %q", tt.pkg, tt.imports, got, tt.want)
		}
	}
}

// judge returns what is wrong with the imports of a package.
func judge(pkg listed) []string {
	folder := strings.TrimPrefix(pkg.ImportPath, module+"/")
	top, _, _ := strings.Cut(folder, "/")
	if !slices.Contains([]string{"cmd", "internal", "catalog", "images", "compose", "test"}, top) {
		return []string{"is in no folder of the top level"}
	}
	room, isInternal := roomOf(folder)
	floor := floorOf(room)
	if isInternal && floor < 0 {
		return []string{"has no floor; give it one here"}
	}
	if order, walled := storeys()[room]; walled && !strings.HasSuffix(folder, "test") && storeyOf(order, folder) < 0 {
		return []string{"has no storey; give it one here"}
	}
	var problems []string
	for _, imported := range pkg.Imports {
		inner, ours := strings.CutPrefix(imported, module+"/")
		switch {
		case ours:
			if problem := judgeInner(folder, room, floor, inner); problem != "" {
				problems = append(problems, problem)
			}
		case isInternal && !isStandard(imported) && (slices.Contains(stdOnly(), room) || slices.Contains(stdOnly(), strings.TrimPrefix(folder, "internal/"))):
			problems = append(problems, "is for the standard library only")
		default:
			for prefix, allowed := range owners() {
				if strings.HasPrefix(imported, prefix) && !slices.Contains(allowed, room) && !slices.Contains(allowed, "/"+top) {
					problems = append(problems, "imports "+imported+", which only "+strings.Join(allowed, ", ")+" may")
				}
			}
		}
	}
	return problems
}

// judgeInner says what is wrong if the package in folder imports another
// one of this module; "" if nothing is.
func judgeInner(folder, room string, floor int, imported string) string {
	importedRoom, isInternal := roomOf(imported)
	switch {
	case strings.HasPrefix(folder, "cmd/"), strings.HasPrefix(folder, "test"), strings.HasPrefix(folder, "images/"), strings.HasSuffix(folder, "test"):
		return ""
	case room == "":
		return "imports " + imported + ", and is data"
	case isInternal && strings.HasSuffix(imported, "test") && importedRoom != room:
		return "imports " + imported + ", which is for tests"
	case isInternal && importedRoom == room:
		return judgeStorey(folder, room, imported)
	case isInternal && slices.Contains(inner(), strings.TrimPrefix(imported, "internal/")):
		return "imports " + imported + ", which is " + importedRoom + "'s own"
	case isInternal && floorOf(importedRoom) >= floor:
		return "imports " + importedRoom + " (floor " + strconv.Itoa(floorOf(importedRoom)) + "), which is not below floor " + strconv.Itoa(floor)
	case !isInternal && imported != "catalog":
		return "imports " + imported + ", which is not below it"
	}
	return ""
}

// judgeStorey says what is wrong if a package of a room imports another one of
// it.
func judgeStorey(folder, room, imported string) string {
	order, walled := storeys()[room]
	if !walled || strings.HasSuffix(folder, "test") {
		return ""
	}
	own, other := storeyOf(order, folder), storeyOf(order, imported)
	switch {
	case strings.HasSuffix(imported, "test"):
		return "imports " + imported + ", which is for tests"
	case other >= own:
		return "imports " + imported + " (storey " + strconv.Itoa(other) + "), which is not below storey " + strconv.Itoa(own)
	}
	return ""
}

func storeyOf(order [][]string, folder string) int {
	return slices.IndexFunc(order, func(storey []string) bool { return slices.Contains(storey, strings.TrimPrefix(folder, "internal/")) })
}

// roomOf returns the first folder below internal.
func roomOf(folder string) (room string, isInternal bool) {
	if folder == "internal" {
		return "", true
	}
	below, isInternal := strings.CutPrefix(folder, "internal/")
	if !isInternal {
		return "", false
	}
	room, _, _ = strings.Cut(below, "/")
	return room, true
}

func floorOf(room string) int {
	return slices.IndexFunc(floors(), func(rooms []string) bool { return slices.Contains(rooms, room) })
}

// isStandard reports whether a path is of the standard library: the first
// element of any other has a dot.
func isStandard(path string) bool {
	first, _, _ := strings.Cut(path, "/")
	return !strings.Contains(first, ".")
}

func list(t *testing.T, goos string) []listed {
	t.Helper()
	command := exec.CommandContext(t.Context(), "go", "list", "-e", "-json=ImportPath,Imports", module+"/...")
	command.Env = append(os.Environ(), "GOOS="+goos, "CGO_ENABLED=0")
	command.Stderr = os.Stderr
	out, err := command.Output()
	if err != nil {
		t.Fatalf("go list on %s: %v", goos, err)
	}
	var packages []listed
	imports := 0
	decoder := json.NewDecoder(bytes.NewReader(out))
	for {
		var pkg listed
		err := decoder.Decode(&pkg)
		if errors.Is(err, io.EOF) {
			break
		}
		if err != nil {
			t.Fatalf("go list on %s: %v", goos, err)
		}
		packages = append(packages, pkg)
		imports += len(pkg.Imports)
	}
	if imports == 0 { // as with -find
		t.Fatalf("go list on %s found no imports in %d packages", goos, len(packages))
	}
	return packages
}
