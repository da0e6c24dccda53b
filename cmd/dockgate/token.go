package main

import (
	"context"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/access"
	"github.com/dockgate/dockgate/internal/daemon"
)

func newToken(f *flags) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Make, list and revoke the tokens of HTTP clients",
		Long: `Make, list and revoke the tokens with which clients use the gateway over HTTP.
The name of a token is the name of its bearer: their active servers, quotas and
audit records are kept under it. The bearer of a token named "local" is you.`,
	}
	cmd.AddCommand(newTokenNew(f), newTokenList(f), newTokenRevoke(f))
	return cmd
}

func newTokenNew(f *flags) *cobra.Command {
	var out output
	var role string
	expires := moment{direction: ahead}
	cmd := &cobra.Command{
		Use:   "new NAME",
		Short: "Make a token, and print it this once",
		Long: `Make a token, and print it alone on standard output. It is not shown again: only
its digest is kept. A client sends it with every request, as the header
"Authorization: Bearer TOKEN".` + exits,
		Example: `  dockgate token new laptop
  dockgate token new ci --expires 30d --json`,
		Args:              cobra.ExactArgs(1),
		ValidArgsFunction: cobra.NoFileCompletions,
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error {
				token, plain, err := d.NewToken(cmd.Context(), args[0], role, expires.Time)
				if err != nil {
					return err
				}
				shown := struct {
					access.Token
					Plain string `json:"token"`
				}{token, plain.Reveal()}
				return out.print(cmd, shown, func() error {
					tell(cmd, "token of %s, %s; it is not shown again:", token.Name, until(token.Expires))
					_, err := fmt.Fprintln(cmd.OutOrStdout(), plain.Reveal())
					return err
				})
			})
		},
	}
	cmd.Flags().StringVar(&role, "role", "", "`role` of the configuration that its bearer has (default the default role)")
	_ = cmd.RegisterFlagCompletionFunc("role", complete(func(context.Context) ([]string, error) { // fails for flags that do not exist only
		options, err := f.options()
		return options.Config.Admission.Roles.Names(), err
	}))
	cmd.Flags().Var(&expires, "expires", "when it stops working: 30d, 12h, or a date such as 2030-12-31 (default never)")
	out.flag(cmd)
	return cmd
}

// until says how long something is good.
func until(expires time.Time) string {
	if expires.IsZero() {
		return "good until it is revoked"
	}
	return "good until " + expires.Local().Format(time.DateTime)
}

func newTokenList(f *flags) *cobra.Command {
	var out output
	cmd := &cobra.Command{
		Use:   "ls",
		Short: "List the tokens",
		Long:  `List the tokens: whose they are, and until when. None is shown itself.` + exits,
		Example: `  dockgate token ls
  dockgate token ls --json`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error { return listTokens(cmd, d, out) })
		},
	}
	out.flag(cmd)
	return cmd
}

func listTokens(cmd *cobra.Command, d *daemon.Daemon, out output) error {
	tokens, err := d.Store.Tokens(cmd.Context())
	if err != nil {
		return err
	}
	return out.print(cmd, append([]access.Token{}, tokens...), func() error {
		if len(tokens) == 0 {
			tell(cmd, "there is no token; make one with: dockgate token new NAME")
			return nil
		}
		rows := make([][]string, len(tokens))
		for i, t := range tokens {
			expires := "never"
			switch {
			case t.Expired(time.Now()):
				expires = "expired"
			case !t.Expires.IsZero():
				expires = t.Expires.Local().Format(time.DateTime)
			}
			rows[i] = []string{t.Name, first(t.Role, "-"), t.Created.Local().Format(time.DateTime), expires}
		}
		return writeTable(cmd.OutOrStdout(), []string{"NAME", "ROLE", "CREATED", "EXPIRES"}, rows)
	})
}

func newTokenRevoke(f *flags) *cobra.Command {
	return &cobra.Command{
		Use:   "revoke NAME...",
		Short: "End tokens",
		Long: `End tokens. Gateways that run refuse them within a quarter of a second, and end
what their bearers have open.` + exits,
		Example: `  dockgate token revoke laptop`,
		Args:    cobra.MinimumNArgs(1),
		ValidArgsFunction: f.completeFrom(func(ctx context.Context, d *daemon.Daemon) ([]string, error) {
			tokens, err := d.Store.Tokens(ctx)
			names := make([]string, len(tokens))
			for i, t := range tokens {
				names[i] = t.Name
			}
			return names, err
		}),
		RunE: func(cmd *cobra.Command, args []string) error {
			return f.use(cmd.Context(), func(d *daemon.Daemon) error {
				for _, name := range args {
					if err := d.RevokeToken(cmd.Context(), name); err != nil {
						return err
					}
					tell(cmd, "revoked: %s", name)
				}
				return nil
			})
		},
	}
}
