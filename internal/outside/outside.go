// Package outside is what a gateway that runs in a container knows of the
// machine around it, and the command line that tells it.
//
// The host's folders are mounted into the gateway at their own paths, read
// only, so that a path means the same inside and outside, and links and owners
// can be looked at. The gateway is told which folders these are: whatever else
// is in its file system is the container's own, and no server gets it.
package outside

import (
	"fmt"
	"path"
	"path/filepath"
	"slices"
	"strings"
)

// The variables of a gateway in a container. The image sets the first two.
const (
	varImage   = "DOCKGATE_IMAGE"
	varVolume  = "DOCKGATE_VOLUME"
	varCommand = "DOCKGATE_COMMAND"
	varSocket  = "DOCKGATE_HOST_SOCKET"
	varHome    = "DOCKGATE_HOST_HOME"
	varUser    = "DOCKGATE_HOST_USER"
	varProject = "DOCKGATE_HOST_PROJECT"
	varFolders = "DOCKGATE_HOST_FOLDERS"
)

const (
	// Image is the gateway's image.
	Image = "dockgate/gateway"
	// Volume is the volume with its state.
	Volume = "dockgate"
	// Socket is where the engine's socket is, on the host by default and in the
	// container always.
	Socket = "/var/run/docker.sock"
	// State is the state folder in the container.
	State = "/data"
)

// A Container is a gateway that runs in one.
type Container struct {
	Image, Volume string
	// Command is what runs a command of dockgate beside the gateway, such as
	// "docker compose run --rm gateway"; empty is docker run.
	Command string
	// Socket is the path of the engine's socket on the host.
	Socket string
	Host   Host
	// Pass are the names of variables that the container has from whoever
	// starts it.
	Pass []string
}

// A Host is what the gateway is told of the machine around it. The zero Host
// is one of which it sees nothing.
type Host struct {
	// Home is the user's home folder, and User the "uid:gid" whose it is.
	Home, User string
	// Project is the folder that is worked in.
	Project string
	// Folders are others that servers may get.
	Folders []string
}

// Read returns what the environment says. It is false outside of a container
// of the gateway's image.
func Read(env func(name string) (string, bool)) (Container, bool) {
	value := func(name string) string { text, _ := env(name); return text }
	c := Container{
		Image: value(varImage), Volume: value(varVolume), Command: value(varCommand), Socket: value(varSocket),
		Host: Host{Home: folder(value(varHome)), User: value(varUser), Project: folder(value(varProject))},
	}
	for _, name := range strings.Split(value(varFolders), ":") {
		if name = folder(name); name != "" {
			c.Host.Folders = append(c.Host.Folders, name)
		}
	}
	return c.withDefaults(), c.Image != ""
}

// folder returns an absolute path without detours; what is none is nothing.
func folder(name string) string {
	if !path.IsAbs(name) {
		return ""
	}
	return path.Clean(name)
}

func (c Container) withDefaults() Container {
	for into, value := range map[*string]string{&c.Image: Image, &c.Volume: Volume, &c.Socket: Socket} {
		if *into == "" {
			*into = value
		}
	}
	return c
}

// Run returns the arguments of docker that start the gateway for a client.
func (c Container) Run() []string {
	c = c.withDefaults()
	args := []string{"run", "-i", "--rm", "--cap-drop", "ALL"}
	if len(c.Host.Seen()) > 0 {
		// What it looks at belongs to the user; root without capabilities may
		// not enter a folder of somebody else's.
		args = append(args, "--cap-add", "DAC_READ_SEARCH")
	}
	args = append(args, c.around()...)
	for _, name := range c.Pass {
		args = append(args, "-e", name)
	}
	return append(args, c.itself()...)
}

// itself are the volume and the image, with their names where these are not
// the usual ones.
func (c Container) itself() []string {
	return append(set([]variable{{varImage, unless(Image, c.Image)}, {varVolume, unless(Volume, c.Volume)}}), "-v", c.Volume+":"+State, c.Image)
}

// A variable is one of a container.
type variable struct{ name, value string }

// set are the flags of those variables that have a value.
func set(variables []variable) []string {
	var flags []string
	for _, v := range variables {
		if v.value != "" {
			flags = append(flags, "-e", v.name+"="+v.value)
		}
	}
	return flags
}

// around are the flags with which a container sees engine and host.
func (c Container) around() []string {
	flags := []string{"-v", c.Socket + ":" + Socket}
	for _, name := range c.Host.Seen() {
		flags = append(flags, "-v", name+":"+name+":ro")
	}
	return append(flags, set([]variable{
		{varSocket, unless(Socket, c.Socket)},
		{varHome, c.Host.Home},
		{varUser, c.Host.User},
		{varProject, c.Host.Project},
		{varFolders, strings.Join(c.Host.Folders, ":")},
	})...)
}

// unless returns a value that is not the usual one.
func unless(usual, value string) string {
	if value == usual {
		return ""
	}
	return value
}

// Seen are the folders that are mounted: those that are in no other.
func (h Host) Seen() []string {
	all := slices.DeleteFunc(append([]string{h.Home, h.Project}, h.Folders...), func(name string) bool { return name == "" })
	slices.Sort(all)
	all = slices.Compact(all)
	return slices.DeleteFunc(slices.Clone(all), func(name string) bool {
		return slices.ContainsFunc(all, func(other string) bool { return other != name && within(name, other) })
	})
}

// Sees reports whether a path is the host's own.
func (h Host) Sees(name string) bool {
	return slices.ContainsFunc(h.Seen(), func(folder string) bool { return within(name, folder) })
}

// within reports whether child is parent or lies below it.
func within(child, parent string) bool {
	return child == parent || strings.HasPrefix(child, strings.TrimSuffix(parent, "/")+"/")
}

// Unseen returns the error of a path that the gateway was not told of.
func (h Host) Unseen(name string) error {
	return &UnseenError{Path: name, Home: h.Home, Folders: h.Folders}
}

// An UnseenError is a path of the host that the gateway does not see.
type UnseenError struct {
	Path string
	// Home and Folders are what it was told of.
	Home    string
	Folders []string
}

// Error says what to add to the line that starts the gateway.
func (e *UnseenError) Error() string {
	const why = "the gateway runs in a container and does not see %s; %s to the docker run line of the client's configuration"
	if e.Home == "" && within(e.Path, State) { // the home folder of the container
		return fmt.Sprintf(why, "your home folder", `add "-v", "HOME:HOME:ro", "-e", "`+varHome+`=HOME", with its path for HOME, and "--cap-add", "DAC_READ_SEARCH",`)
	}
	folders := strings.Join(append(slices.Clone(e.Folders), e.Path), ":")
	return fmt.Sprintf(why, e.Path, fmt.Sprintf(`add "-v", "%s:%s:ro", "-e", "%s=%s" and "--cap-add", "DAC_READ_SEARCH"`, e.Path, e.Path, varFolders, folders))
}

// Absolute returns the host's path of a folder that a person named.
func Absolute(name string) (string, error) {
	found, err := filepath.Abs(name)
	if err != nil {
		return "", err
	}
	if strings.ContainsAny(found, ":") {
		return "", fmt.Errorf("%s: a folder with a colon in its name cannot be mounted", found)
	}
	return found, nil
}
