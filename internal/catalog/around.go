package catalog

import "io/fs"

// Surroundings are what the entries of some formats refer to. The zero value
// is a machine of which nothing is known.
type Surroundings struct {
	// OS is the operating system, as runtime.GOOS has it.
	OS string
	// Home is the user's home folder, Dir the working directory.
	Home, Dir string
	// Env looks a variable up; it is asked for paths, never for secrets.
	Env func(name string) (string, bool)
	// Stat looks at a file of the host.
	Stat func(path string) (fs.FileInfo, error)
	// Known yields the entries of catalogs that were read before.
	Known func(name string) (Server, bool)
}

// Entry returns the entry of a catalog that was read before.
func (s Surroundings) Entry(name string) (Server, bool) {
	if s.Known == nil {
		return Server{}, false
	}
	return s.Known(name)
}

// Exists reports whether there is a file or folder at a path, as far as that
// is known.
func (s Surroundings) Exists(path string) bool {
	if s.Stat == nil {
		return false
	}
	_, err := s.Stat(path)
	return err == nil
}

// Variable returns the value of a variable of the environment, or nothing.
func (s Surroundings) Variable(name string) string {
	if s.Env == nil {
		return ""
	}
	value, _ := s.Env(name)
	return value
}
