package secret

import (
	"context"
	"errors"
	"fmt"
	"path/filepath"
	"strings"
)

// A Ref names a secret.
type Ref struct {
	// Name is the secret's name in a secret store, such as "postgres.url".
	Name string
	// Env is the variable that the user sets, such as "POSTGRES_URL".
	Env string
}

// A Need is a secret that a server names.
type Need struct {
	Ref
	// Required secrets must be there before the server starts.
	Required bool
	// Instructions tell a person where to get it.
	Instructions string
}

// A Found is a secret and the place where it was.
type Found struct {
	Ref
	Value Value
	// Source is [Environment], or the path of a .env file.
	Source string
}

// Environment is the source of a secret from the environment of the process.
const Environment = "environment"

// Sources are the places where secrets are looked up: the environment first,
// then the .env file. A variable that is set to nothing counts as not set. The
// file is read at each look-up, so that a secret can be set while the gateway
// runs. The zero value has no secrets.
type Sources struct {
	// Env looks up a variable of the process, as os.LookupEnv does.
	Env func(name string) (string, bool)
	// Dir is the folder of the .env file; "" is no file.
	Dir string
}

// Lookup returns a secret and its source. It returns a [MissingError] if the
// secret is nowhere, and a [FileError] if the .env file is not as it should be.
func (s Sources) Lookup(ctx context.Context, ref Ref) (Value, string, error) {
	found, err := s.Resolve(ctx, []Need{{Ref: ref, Required: true}})
	if err != nil {
		return Value{}, "", err
	}
	return found[0].Value, found[0].Source, nil
}

// Resolve returns the secrets among needs that are there, in their order. If
// required ones are not there, it returns one [MissingError] for all of them.
func (s Sources) Resolve(ctx context.Context, needs []Need) ([]Found, error) {
	if err := ctx.Err(); err != nil {
		return nil, err
	}
	if len(needs) == 0 {
		return nil, nil
	}
	file, err := s.readFile()
	if err != nil {
		return nil, err
	}
	var found []Found
	missing := &MissingError{File: s.path()}
	for _, need := range needs {
		if plain := s.env(need.Env); plain != "" {
			found = append(found, Found{need.Ref, NewValue(plain), Environment})
		} else if plain := file[need.Env]; plain != "" {
			found = append(found, Found{need.Ref, NewValue(plain), s.path()})
		} else if need.Required {
			missing.Secrets = append(missing.Secrets, need)
		}
	}
	if len(missing.Secrets) > 0 {
		return nil, missing
	}
	return found, nil
}

func (s Sources) env(name string) string {
	if s.Env == nil || name == "" {
		return ""
	}
	plain, _ := s.Env(name)
	return plain
}

// path returns the path of the .env file, "" if there is to be none.
func (s Sources) path() string {
	if s.Dir == "" {
		return ""
	}
	return filepath.Join(s.Dir, ".env")
}

// A MissingError says that required secrets are nowhere.
type MissingError struct {
	// Secrets are all that are missing.
	Secrets []Need
	// File is the path of the .env file that may hold them; "" if none may.
	File string
}

// Error names the secrets.
func (e *MissingError) Error() string {
	names := make([]string, len(e.Secrets))
	for i, need := range e.Secrets {
		names[i] = fmt.Sprintf("%q", need.Name)
	}
	if len(names) == 1 {
		return "secret " + names[0] + " is not set"
	}
	return "secrets " + strings.Join(names, ", ") + " are not set"
}

// Hint names the variables to set and where, with the instructions of each.
func (e *MissingError) Hint() string {
	var b strings.Builder
	for i, need := range e.Secrets {
		if i > 0 {
			b.WriteString("\n")
		}
		fmt.Fprintf(&b, "set %s in the environment", need.Env)
		if e.File != "" {
			fmt.Fprintf(&b, " or in %s", e.File)
		}
		if need.Instructions != "" {
			fmt.Fprintf(&b, ": %s", need.Instructions)
		}
	}
	return b.String()
}

// A FileError says that a .env file is not as it should be. It never quotes
// the file.
type FileError struct {
	Path string
	// Line is 1-based; 0 where no line is meant.
	Line    int
	Problem string
}

// Error returns "file:line: problem".
func (e *FileError) Error() string {
	if e.Line == 0 {
		return fmt.Sprintf("%s: %s", e.Path, e.Problem)
	}
	return fmt.Sprintf("%s:%d: %s", e.Path, e.Line, e.Problem)
}

// Hint says how to write a value.
func (e *FileError) Hint() string {
	return "write NAME=VALUE, and a value with spaces, quotes, # or $ as NAME='VALUE'"
}

// errNotRegular says that a .env file is a folder, a pipe or a device.
var errNotRegular = errors.New("not a regular file")
