package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/docker/go-units"
	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/docker/owner"
)

// A sweep removes what gateways have left on the engine, of this state folder
// and of others, and lists it.
type sweep struct {
	// wanted is whether the user wants a sweep, and sure whether nothing is to
	// be asked.
	wanted, sure bool
	output
}

func (s sweep) run(cmd *cobra.Command, d *daemon.Daemon) error {
	ctx, sure := cmd.Context(), s.sure
	found, err := d.Engine.Leftovers(ctx)
	if err != nil {
		return err
	}
	if !s.json {
		if err := printLeftovers(cmd, found); err != nil {
			return err
		}
	}
	if _, err := d.Engine.Sweep(ctx); err != nil {
		return err
	}
	var removed, unknown []owner.Leftover
	for _, left := range found {
		if left.Standing == owner.Unknown {
			unknown = append(unknown, left)
		} else {
			removed = append(removed, left)
		}
	}
	if !sure && len(unknown) > 0 {
		if sure, err = confirmForeign(ctx, len(unknown)); err != nil {
			return err
		}
	}
	if sure {
		discarded, err := d.Engine.Discard(ctx, unknown)
		if err != nil {
			return err
		}
		removed, unknown = append(removed, discarded...), nil
	}
	if len(unknown) > 0 {
		tell(cmd, "left %d that may belong to a gateway that runs; --yes removes them", len(unknown))
	}
	if len(found) > 0 {
		tell(cmd, "removed %d of %d", len(removed), len(found))
	}
	if !s.json {
		return nil
	}
	return writeJSON(cmd.OutOrStdout(), swept(removed, unknown))
}

// confirmForeign asks whether to remove what may be in use. Where there is
// nobody to ask the answer is no.
func confirmForeign(ctx context.Context, count int) (sure bool, err error) {
	c, err := openConsole("doctor --sweep")
	var nobody *noTerminalError
	if errors.As(err, &nobody) {
		return false, nil
	}
	if err != nil {
		return false, err
	}
	defer func() { err = errors.Join(err, c.Close()) }()
	answer, err := c.ask(ctx, fmt.Sprintf("%d of them are of other state folders, whose gateways may run. Remove these too? [y/N] ", count))
	return strings.EqualFold(answer, "y") || strings.EqualFold(answer, "yes"), err
}

// A sweptObject is what became of a leftover, for programs.
type sweptObject struct {
	Kind    owner.Kind     `json:"kind"`
	ID      string         `json:"id"`
	Server  string         `json:"server"`
	Gateway string         `json:"gateway"`
	State   string         `json:"state"`
	Owner   owner.Standing `json:"owner"`
	Created time.Time      `json:"created,omitzero"`
	Expires time.Time      `json:"expires,omitzero"`
	Removed bool           `json:"removed"`
}

func swept(removed, left []owner.Leftover) []sweptObject {
	all := make([]sweptObject, 0, len(removed)+len(left))
	for i, l := range append(removed, left...) {
		all = append(all, sweptObject{
			Kind: l.Kind, ID: l.ID, Server: l.Server, Gateway: l.Owner, State: l.State, Owner: l.Standing,
			Created: l.Created, Expires: l.Expires, Removed: i < len(removed),
		})
	}
	return all
}

func printLeftovers(cmd *cobra.Command, found []owner.Leftover) error {
	if len(found) == 0 {
		tell(cmd, "nothing is left of any gateway that has ended")
		return nil
	}
	now := time.Now()
	rows := make([][]string, len(found))
	for i, l := range found {
		age, expires := "", ""
		if !l.Created.IsZero() {
			age = units.HumanDuration(now.Sub(l.Created))
		}
		switch {
		case l.Expires.IsZero():
		case l.Standing == owner.Expired:
			expires = ago(l.Expires)
		default:
			expires = "in " + units.HumanDuration(l.Expires.Sub(now))
		}
		rows[i] = []string{string(l.Kind), shortDigest(l.ID), l.Server, string(l.Standing), age, expires, shortDigest(l.State)}
	}
	return writeTable(cmd.OutOrStdout(), []string{"KIND", "ID", "SERVER", "OWNER", "AGE", "EXPIRES", "STATE FOLDER"}, rows)
}
