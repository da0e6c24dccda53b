package secret

import (
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"

	"github.com/compose-spec/compose-go/v2/dotenv"
)

// maxFile bounds a .env file.
const maxFile = 64 << 10

// readFile returns the variables of the .env file. A file that is not there
// has none.
func (s Sources) readFile() (map[string]string, error) {
	path := s.path()
	if path == "" {
		return nil, nil
	}
	text, err := readRegular(path)
	if errors.Is(err, os.ErrNotExist) {
		return nil, nil
	}
	var tooLong *FileError
	if errors.As(err, &tooLong) {
		return nil, err
	}
	if err != nil {
		return nil, fmt.Errorf("read secrets: %w", err)
	}
	return parse(path, text, s.env)
}

func readRegular(path string) (string, error) {
	// Before it is opened: a pipe would wait for its writer.
	info, err := os.Stat(path)
	if err != nil {
		return "", err
	}
	if !info.Mode().IsRegular() {
		return "", fmt.Errorf("%s: %w", path, errNotRegular)
	}
	file, err := os.Open(path)
	if err != nil {
		return "", err
	}
	defer func() { _ = file.Close() }()
	text, err := io.ReadAll(io.LimitReader(file, maxFile+1))
	if err != nil {
		return "", err
	}
	if len(text) > maxFile {
		return "", &FileError{Path: path, Problem: "over 64 KiB"}
	}
	return string(text), nil
}

// parse reads the text of a .env file in the syntax of Docker Compose: quotes,
// comments, "export", values over several lines in quotes, and ${NAME} for
// variables of the environment and of the lines above, in all its forms.
//
// It differs in one point: a variable that is not set is an error rather than
// nothing, unless a default is given. A password with a dollar would else lose
// its end without a word.
//
// The text is read statement by statement. The parser's own errors cannot be
// used: they quote the line, and name no line for some problems and the last
// one for a quote that does not close.
func parse(path, text string, env func(string) string) (map[string]string, error) {
	text = strings.ReplaceAll(strings.TrimPrefix(text, "\ufeff"), "\r\n", "\n")
	lines := strings.SplitAfter(text, "\n")
	all := make(map[string]string)
	for start := 0; start < len(lines); {
		read, unset, err := parseFrom(lines[start:], all, env)
		switch {
		case err != nil:
			return nil, &FileError{path, start + 1, "no variable: want NAME=VALUE, quotes and ${…} closed"}
		case unset:
			return nil, &FileError{path, start + 1, "the value names a variable that is not set; a dollar sign is written $$, or in single quotes"}
		}
		start += read
	}
	return all, nil
}

// parseFrom reads the first statement of lines into all and returns how many
// lines it took. A value in quotes takes as many as it needs.
func parseFrom(lines []string, all map[string]string, env func(string) string) (read int, unset bool, err error) {
	for read = 1; read <= len(lines); read++ {
		statement := strings.Join(lines[:read], "")
		unset = false
		lookup := func(name string) (string, bool) {
			if plain := env(name); plain != "" {
				return plain, true
			}
			if plain, ok := all[name]; ok {
				return plain, true
			}
			if namesPlainly(statement, name) {
				// Said to be set, because the parser logs its name otherwise,
				// and it may be the end of a password.
				unset = true
				return "", true
			}
			return "", false
		}
		var values map[string]string
		values, err = dotenv.UnmarshalWithLookup(statement+"\n", lookup)
		if err != nil {
			continue
		}
		for name, value := range values {
			all[name] = value
		}
		return read, unset, nil
	}
	return 0, false, err
}

// namesPlainly reports whether a statement has $name or ${name}, which give no
// default.
func namesPlainly(statement, name string) bool {
	quoted := regexp.QuoteMeta(name)
	found, err := regexp.MatchString(`\$(`+quoted+`($|[^A-Za-z0-9_])|\{`+quoted+`\})`, statement)
	return found || err != nil
}
