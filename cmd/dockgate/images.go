package main

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/docker/install"
)

func newImages(f *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "images",
		Short: "List and remove the images of installed packages",
		Long: `List and remove the images of installed packages. An entry that runs npx, uvx or
"python -m" is installed once, with network, into an image of its own; nothing
of the package runs meanwhile. What is removed is installed anew when it is
needed.`,
	}
	cmd.AddCommand(newImagesList(f), newImagesRemove(f))
	return cmd
}

// A listedImage is the image of a package.
type listedImage struct {
	ID      string    `json:"id"`
	Package string    `json:"package"`
	Runtime string    `json:"runtime"`
	Size    int64     `json:"size"`
	Created time.Time `json:"created"`
}

func newImagesList(f *flags) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the images of installed packages",
		Long:  "List the images of installed packages, the newest first." + exits,
		Example: `  dockgate images ls
  dockgate images ls --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error {
				found, err := d.Engine.Installed(cmd.Context())
				if err != nil {
					return err
				}
				images := []listedImage{}
				var rows [][]string
				for _, i := range found {
					images = append(images, listedImage(i))
					rows = append(rows, []string{i.Package, i.Runtime, short(i.ID), units.HumanSize(float64(i.Size)), units.HumanDuration(time.Since(i.Created)) + " ago"})
				}
				return out.print(cmd, images, func() error {
					if len(images) == 0 {
						tell(cmd, "no package is installed")
						return nil
					}
					return writeTable(cmd.OutOrStdout(), []string{"PACKAGE", "RUNTIME", "IMAGE", "SIZE", "CREATED"}, rows)
				})
			})
		},
	}
	out.flag(cmd)
	return cmd
}

// short is an id as people compare it.
func short(id string) string {
	_, digest, _ := strings.Cut(id, ":")
	return digest[:min(12, len(digest))]
}

func newImagesRemove(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "rm PACKAGE|IMAGE...",
		Short: "Remove images of installed packages",
		Long: `Remove images of installed packages, by package or by the start of the image's
id. One whose server runs is not removed.` + exits,
		Example: `  dockgate images rm @modelcontextprotocol/server-everything@2026.8.31`,
		Args:    cobra.MinimumNArgs(1),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error {
				found, err := d.Engine.Installed(cmd.Context())
				if err != nil {
					return err
				}
				for _, name := range args {
					matching := slices.DeleteFunc(slices.Clone(found), func(i install.Installed) bool { return !names(name, i) })
					if len(matching) == 0 {
						return &notInstalledError{name}
					}
					for _, i := range matching {
						if err := d.Engine.Uninstall(cmd.Context(), i.ID); err != nil {
							return fmt.Errorf("image of %s: %w", i.Package, err)
						}
						tell(cmd, "removed %s (%s)", i.Package, short(i.ID))
					}
				}
				return nil
			})
		},
	}
}

// names reports whether a word names an image: its package, with or without
// the version, or the start of its id.
func names(word string, i install.Installed) bool {
	at := strings.LastIndexByte(i.Package, '@')
	return word == i.Package || at > 0 && word == i.Package[:at] ||
		len(word) >= 4 && (strings.HasPrefix(i.ID, word) || strings.HasPrefix(short(i.ID), word))
}

type notInstalledError struct{ name string }

func (e *notInstalledError) Error() string { return fmt.Sprintf("no image of a package %q", e.name) }

// Hint says where to look.
func (e *notInstalledError) Hint() string { return "see: dockgate images ls" }
