package cli

import (
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/starter/servers"
)

func (i *invocation) backupCommand() *cobra.Command {
	return withoutServer(group("backup", "Check backups of the servers", i.backupCheckCommand()))
}

func (i *invocation) backupCheckCommand() *cobra.Command {
	var f siteFlags
	maxAge := job.Duration(24 * time.Hour)
	cmd := &cobra.Command{
		Use:         "check FOLDER",
		Annotations: map[string]string{exitMeansChanges: ""},
		Short:       "Compare a backup with the servers: how old it is, and what is missing",
		Long: `check compares a backup with the servers that are at work. FOLDER has a folder for each:
temporal with a dump of PostgreSQL or a SQLite database, nats with a folder of "nats stream
backup" for each stream and bucket, s3 with the objects of each bucket, and influx with what
"influxd backup -portable" wrote, or a folder of it for each mirror.

Each line is ok, or wrong with what to do. What is saved, what is cut off, what has come
since, and whether the parts were saved in the right order is read from the files and from
the servers. Nothing is changed, and nothing is restored to try it.

Exit codes: 0 nothing is wrong, 1 error or wrong usage, 2 something is wrong.`,
		Args: arguments(argumentFolder),
		RunE: func(cmd *cobra.Command, args []string) error {
			site, err := i.siteOf(cmd, f, servers.BackupParts())
			if err != nil {
				return err
			}
			if maxAge <= 0 {
				return misuse(cmd, "--max-age %s is not longer than zero", maxAge)
			}
			done := i.waiting("the servers")
			results, err := servers.CheckBackup(cmd.Context(), site, servers.Backup{Folder: args[0], MaxAge: maxAge.Std()})
			done()
			if err != nil {
				return err
			}
			return i.showResults(results, errChanges)
		},
	}
	f.register(i, cmd, servers.BackupParts())
	f.registerFile(cmd)
	cmd.Flags().Var(durationOf(&maxAge), "max-age", "how old each part may be")
	return cmd
}
