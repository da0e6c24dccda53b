package main

import (
	"errors"
	"fmt"
	"log/slog"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dockgate/dockgate/internal/daemon"
	"github.com/dockgate/dockgate/internal/doctor"
)

func newDoctor(f *flags) *cobra.Command {
	var s sweep
	cmd := &cobra.Command{
		Use:   "doctor",
		Short: "Check engine, state folder, catalogs and configuration",
		Long: `Check all that a gateway needs: the configuration, the catalogs, the state
folder and its disk, the audit record, the engine, the rights on its socket, and
what of a sandbox it cannot enforce. It fails if something keeps the gateway
from working.

With --sweep it lists the containers, networks and volumes on the engine whose
gateway is not known to live, and removes them: at once if the gateway is gone
or their time is over, as every gateway does; after a question if they are of
another state folder, because then it may still run.` + exits,
		Example: `  dockgate doctor
  dockgate doctor --json
  dockgate doctor --sweep`,
		Args: cobra.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			if s.sure && !s.wanted {
				return &usageError{cmd: cmd, err: errors.New("--yes needs --sweep")}
			}
			if s.wanted {
				return f.use(cmd.Context(), func(d *daemon.Daemon) error { return s.run(cmd, d) })
			}
			options, err := f.around()
			if err != nil {
				return err
			}
			options.Logger = f.logger(slog.LevelError)
			var broken error
			options.Config, broken = f.loadConfig(options.Home)
			findings := []doctor.Finding{doctor.NewFinding("config", f.describeConfig(options.Home), broken)}
			findings = append(findings, doctor.Examine(cmd.Context(), options)...)
			err = s.print(cmd, findings, func() error { return printFindings(cmd, findings) })
			if err == nil && !doctor.Healthy(findings) {
				err = errors.New("something that the gateway needs is broken, see above")
			}
			return err
		},
	}
	cmd.Flags().BoolVar(&s.wanted, "sweep", false, "remove what gateways have left on the engine")
	cmd.Flags().BoolVar(&s.sure, "yes", false, "with --sweep: remove what is of other state folders without asking")
	s.flag(cmd)
	return cmd
}

// describeConfig names the configuration file, if it is there.
func (f *flags) describeConfig(home string) string {
	file, _ := f.configFile(home)
	if _, err := os.Stat(file); err != nil {
		return "defaults; there is no " + file
	}
	return file
}

func printFindings(cmd *cobra.Command, findings []doctor.Finding) error {
	paint := paintFor(cmd.OutOrStdout())
	marks := map[doctor.Health]string{
		doctor.Good: paint.green("✓"), doctor.Poor: paint.yellow("!"), doctor.Broken: paint.red("✗"),
	}
	for _, finding := range findings {
		mark, subject := marks[finding.Health], finding.Subject
		for line := range strings.SplitSeq(finding.Text, "\n") {
			if _, err := fmt.Fprintf(cmd.OutOrStdout(), "%s %-9s %s\n", mark, subject, clean(line)); err != nil {
				return err
			}
			mark, subject = " ", ""
		}
		if finding.Hint == "" {
			continue
		}
		if _, err := fmt.Fprintf(cmd.OutOrStdout(), "  %-9s %s\n", "", paint.dim("hint: "+clean(phrase(finding.Hint)))); err != nil {
			return err
		}
	}
	return nil
}
