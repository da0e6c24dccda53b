package outside

import (
	"regexp"
	"slices"
)

// ID returns the engine's id of the container that this process runs in, from
// the text of /proc/self/mountinfo: the engine keeps the container's name and
// its network's names in files of a folder with that id. It is empty if the
// text does not say.
func ID(mountinfo string) string {
	found := regexp.MustCompile(`/([0-9a-f]{64})/(?:[^ /]+/)*(?:hostname|hosts|resolv\.conf) /etc/(?:hostname|hosts|resolv\.conf) `).FindStringSubmatch(mountinfo)
	if found == nil {
		return ""
	}
	return found[1]
}

// Common returns the container as clients in all its folders know it: it sees
// the same, and works in none of them.
func (c Container) Common() Container {
	c.Host.Folders = slices.DeleteFunc(c.Host.Seen(), func(name string) bool { return name == c.Host.Home })
	c.Host.Project = ""
	return c
}
