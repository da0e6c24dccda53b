package main

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/catalog"
	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/docker/owner"
)

func newPs(f *flags) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "ps",
		Short: "List the containers that run",
		Long:  `List the containers of all gateways of this state folder.` + exits,
		Example: `  dockgate ps
  dockgate ps --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error {
				containers, err := d.Running(cmd.Context())
				if err != nil {
					return err
				}
				return printContainers(cmd, containers, out)
			})
		},
	}
	out.flag(cmd)
	return cmd
}

func printContainers(cmd *cobra.Command, containers []owner.Container, out output) error {
	type container struct {
		Server  string    `json:"server"`
		ID      string    `json:"id"`
		Name    string    `json:"name"`
		State   string    `json:"state"`
		Image   string    `json:"image"`
		Gateway string    `json:"gateway"`
		Created time.Time `json:"created"`
		Expires time.Time `json:"expires"`
	}
	listed := []container{}
	var rows [][]string
	for _, c := range containers {
		listed = append(listed, container{c.Server, c.ID, c.Name, c.State, c.Image, c.Owner, c.Created, c.Expires})
		rows = append(rows, []string{c.Server, shortDigest(c.ID), c.State, ago(c.Created), shortDigest(c.Owner), shortImage(c.Image)})
	}
	return out.print(cmd, listed, func() error {
		if len(rows) == 0 {
			tell(cmd, "nothing runs; servers start on their first call")
			return nil
		}
		return writeTable(cmd.OutOrStdout(), []string{"SERVER", "CONTAINER", "STATE", "STARTED", "GATEWAY", "IMAGE"}, rows)
	})
}

// known returns an error for a name that no server has or had.
func known(d *daemon.Daemon, name string, containers []owner.Container) error {
	for _, c := range containers {
		if c.Server == name {
			return nil
		}
	}
	_, err := d.Catalog().Server(name)
	if err == nil {
		return nil
	}
	names := make([]string, 0, len(containers))
	for _, c := range containers {
		names = append(names, c.Server)
	}
	if len(names) > 0 {
		return &catalog.UnknownServerError{Name: name, Nearest: catalog.Nearest(name, append(names, supported(d.Catalog())...))}
	}
	return err
}
