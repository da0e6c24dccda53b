package main

import (
	"context"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/client"
)

// clientNames lists the clients, for completion.
func clientNames(context.Context) ([]string, error) {
	var names []string
	for _, c := range client.Known() {
		names = append(names, c.Name)
	}
	return names, nil
}

// A listedClient is a client as it is on this machine.
type listedClient struct {
	Client    string `json:"client"`
	Title     string `json:"title"`
	Path      string `json:"path"`
	Found     bool   `json:"found"`
	Connected bool   `json:"connected"`
	Error     string `json:"error,omitempty"`
}

// listClients shows which clients there are, and which are connected.
func (f *flags) listClients(cmd *cobra.Command, out output) error {
	options, err := f.around()
	if err != nil {
		return err
	}
	if options.Outside != nil && options.Outside.Home == "" {
		return &insideError{}
	}
	machine := machineOf(options)
	var all []listedClient
	for _, c := range client.Known() {
		path := c.File(machine)
		listed := listedClient{Client: c.Name, Title: c.Title, Path: path, Found: c.Installed(machine)}
		state := c.State(path)
		listed.Connected = state.Connected
		if state.Err != nil {
			listed.Error = state.Err.Error()
		}
		all = append(all, listed)
	}
	return out.print(cmd, all, func() error {
		marks := map[bool]string{true: "yes", false: "-"}
		rows := make([][]string, len(all))
		for i, c := range all {
			rows[i] = []string{c.Client, marks[c.Found], marks[c.Connected], first(c.Error, c.Path)}
		}
		return writeTable(cmd.OutOrStdout(), []string{"CLIENT", "FOUND", "CONNECTED", "FILE"}, rows)
	})
}
