package daemon

// ParseProject is parseProject, for tests.
func ParseProject(path string, data []byte, o Options) error {
	_, err := parseProject(path, data, o)
	return err
}
