// Package host looks at paths of the machine that containers would mount.
//
// It follows every link, and tells what is there and whose it is. A gateway
// that runs in a container itself sees its own files where it was shown none of
// the host's: those it refuses, and whatever a link leads to.
package host
