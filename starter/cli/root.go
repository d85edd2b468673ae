package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dendrascience/dendra-jobs/job"
)

const rootHelp = `starter declares, runs and manages the jobs of one Temporal namespace.

Jobs are declared in jobs.toml: "validate" checks the file, "schema" lets
editors check it, "plan" compares it with Temporal, "apply" brings Temporal in
line, and "reconcile" does so with the platform's integrations. "run", "jobs",
"upcoming", "runs", "queues" and "workers" show and change what is in Temporal.
"quarantine" is for messages that the data pipeline rejected, "archive" for the
archive of raw messages, "loads" for the lag of InfluxDB, "reverse-sync" for
metadata in Release 2, "teardown" for organizations that are deleted. "serve" is
the server of the Job API and the status page.

On servers of your own "setup" makes what is needed, "doctor" checks them all, and
"backup check" their backups.

Data goes to standard output, as a table or, with -o json, as JSON; progress
and errors go to standard error.

The settings of Temporal are those of the Temporal CLI: flags first, then TEMPORAL_*
variables (TEMPORAL_ADDRESS, TEMPORAL_NAMESPACE, TEMPORAL_PROFILE, ...), then
the profile file. The default is 127.0.0.1:7233 and the namespace "default".

Exit codes:
  0  the command succeeded; of plan and drift: there is nothing to change
  1  it failed; of run: the run failed or was canceled
  2  wrong usage: an unknown flag, or a filter with an unknown value.
     Of plan: there are changes, or jobs that are blocked; of drift: there is
     drift; of archive audit: something is wrong; of reverse-sync plan and run:
     something is not in line; of teardown plan: something blocks it; of doctor
     and backup check: something is to do. Of these, wrong usage is 1`

func (i *invocation) root() *cobra.Command {
	root := group("starter", "Declare, run and manage jobs",
		i.validateCommand(), withoutServer(i.schemaCommand()), i.planCommand(), i.applyCommand(), i.driftCommand(),
		i.reconcileCommand(), i.integrationsCommand(),
		i.runCommand(), i.importCommand(), i.exportCommand(), i.jobsCommand(), i.upcomingCommand(), i.runsCommand(), i.queuesCommand(),
		i.workersCommand(), i.topCommand(), i.alertsCommand(), i.loadsCommand(), i.quarantineCommand(), i.bookmarksCommand(), i.changesCommand(),
		i.archiveCommand(), i.imagesCommand(), i.reverseSyncCommand(), i.teardownCommand(), i.deployCommand(),
		withoutServer(i.setupCommand()), withoutServer(i.doctorCommand()), i.backupCommand(), withoutServer(i.healthCommand()), withoutServer(i.replayCommand()), withoutServer(i.serveCommand()), withoutServer(i.versionCommand()))
	root.Long = rootHelp
	root.SilenceErrors, root.SilenceUsage = true, true
	root.SetIn(i.Stdin)
	root.SetOut(i.Stdout)
	root.SetErr(i.Stderr)
	root.SetFlagErrorFunc(func(cmd *cobra.Command, err error) error { return misuse(cmd, "%s", flagError(err)) })
	root.PersistentPreRunE = i.start

	flags := root.PersistentFlags()
	flags.SortFlags = false
	flags.Var(textValue{&i.site.Temporal.Address, "HOST:PORT"}, "address", "address of Temporal")
	flags.Var(textValue{&i.site.Temporal.Namespace, "NAME"}, "namespace", "Temporal namespace")
	flags.Var(textValue{&i.site.Temporal.Profile, "NAME"}, "profile", "profile of the Temporal CLI's configuration file")
	registerServer(&i.remoteServer, flags)
	i.format = formatTable
	flags.VarP(choose(&i.format, formatTable, formatJSON), "output", "o", "table or json")
	flags.BoolVar(&i.noColor, "no-color", false, "no colors, as with NO_COLOR set")
	flags.BoolVar(&i.wide, "wide", false, "tables have all columns, however wide the terminal is")
	flags.Var(durationOf(&i.timeout), "timeout", "give up after this long, as PT30S, 30s or 30 (default: never)")
	completeFixed(root, "output", string(formatTable), string(formatJSON))
	addCompletion(root)
	return root
}

// addCompletion adds Cobra's "completion", which would show its help and succeed for a shell that
// there is no completion for.
func addCompletion(root *cobra.Command) {
	root.InitDefaultCompletionCmd()
	for _, cmd := range root.Commands() {
		if cmd.Name() == "completion" {
			shells := group("", "")
			cmd.Args, cmd.RunE, cmd.Annotations = shells.Args, shells.RunE, shells.Annotations
			for _, shell := range cmd.Commands() {
				shell.Annotations = shells.Annotations
			}
		}
	}
}

// callsNothing marks the commands that speak to no server.
const callsNothing = "calls-nothing"

// onlyLocal marks the commands that do not work through --server.
const onlyLocal = "only-local"

// withoutServer marks a command, with its subcommands, as one that does not work through --server.
func withoutServer(cmd *cobra.Command) *cobra.Command {
	if cmd.Annotations == nil {
		cmd.Annotations = map[string]string{}
	}
	cmd.Annotations[onlyLocal] = ""
	return cmd
}

// isLocal reports whether a command was marked by [withoutServer].
func isLocal(cmd *cobra.Command) bool {
	for ; cmd != nil; cmd = cmd.Parent() {
		if _, found := cmd.Annotations[onlyLocal]; found {
			return true
		}
	}
	return false
}

// start makes the clients of a command, and limits it by --timeout. A command that does not work
// through a server refuses --server, and the variable has no effect on it.
func (i *invocation) start(cmd *cobra.Command, _ []string) error {
	_, alone := cmd.Annotations[callsNothing]
	alone = alone || slices.Contains([]string{"help", cobra.ShellCompRequestCmd}, cmd.Name()) // Cobra adds these when it starts.
	switch local := isLocal(cmd); {
	case local && cmd.Flags().Changed("server"):
		return misuse(cmd, "%s does not work through --server: it works on this machine and on the servers that its settings name", cmd.CommandPath())
	case !local && !alone:
		if err := i.connect(); err != nil {
			return err
		}
	}
	if i.timeout == 0 {
		return nil
	}
	ctx, cancel := context.WithTimeoutCause(cmd.Context(), i.timeout.Std(), errTimeout)
	i.closers = append(i.closers, cancel)
	i.ctx = ctx
	cmd.SetContext(ctx)
	return nil
}

// group makes a command that has subcommands only: called alone it lists them.
func group(use, short string, commands ...*cobra.Command) *cobra.Command {
	cmd := &cobra.Command{
		Use:                        use,
		Short:                      short,
		DisableFlagsInUseLine:      true,
		SuggestionsMinimumDistance: 2, // As Cobra has it for its own messages.
		Annotations:                map[string]string{callsNothing: ""},
		RunE:                       func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
		Args: func(cmd *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			text := fmt.Sprintf("unknown command %q", args[0])
			if near := cmd.SuggestionsFor(args[0]); len(near) > 0 {
				text += fmt.Sprintf("; did you mean %q?", strings.Join(near, `" or "`))
			}
			return misuse(cmd, "%s", text)
		},
	}
	cmd.AddCommand(commands...)
	return cmd
}

// arguments checks the number of arguments: required ones are in upper case,
// [OPTIONAL] ones in brackets.
func arguments(want ...string) cobra.PositionalArgs {
	required := 0
	for _, name := range want {
		if !strings.HasPrefix(name, "[") {
			required++
		}
	}
	return func(cmd *cobra.Command, args []string) error {
		switch {
		case len(args) < required:
			return misuse(cmd, "%s is missing", want[len(args)])
		case len(args) > len(want):
			return misuse(cmd, "unexpected argument %q", args[len(want)])
		}
		for n, arg := range args {
			what := strings.Trim(want[n], "[]")
			if isPath := what == argumentFile || what == argumentPlan || what == argumentFolder; isPath && arg != "" {
				continue
			}
			if err := checkName(cmd, what, arg); err != nil {
				return err
			}
		}
		return nil
	}
}

// Arguments that are paths, not names.
const (
	argumentFile   = "FILE"
	argumentPlan   = "PLAN"
	argumentFolder = "FOLDER"
)

// argumentQueue is an argument that names a queue, for which [job.NameRule] holds.
const argumentQueue = "QUEUE"

// checkName refuses a text that cannot be a name. A script with an unset variable
// passes an empty one.
func checkName(cmd *cobra.Command, what, text string) error {
	if err := checkNameText(text); err != nil && (what != argumentQueue || text == "") {
		return misuse(cmd, "%s %q: %s", what, text, err)
	}
	if what == argumentQueue {
		if err := job.CheckKey("queue", text); err != nil {
			return misuse(cmd, "%s", err)
		}
	}
	return nil
}

// errEmpty refuses an empty value.
var errEmpty = errors.New("it is empty")

func checkNameText(text string) error {
	if text == "" {
		return errEmpty
	}
	for _, r := range text {
		if r <= ' ' || r > '~' {
			return errors.New("a name is of ASCII characters without spaces")
		}
	}
	return nil
}

// usageError is the error of wrong usage.
type usageError struct {
	text string
	// changes says that the exit code of wrong usage means changes for this command.
	changes bool
}

// Error implements error.
func (e *usageError) Error() string { return e.text }

// exitMeansChanges marks the commands whose exit code 2 means changes.
const exitMeansChanges = "exit-code-2-means-changes"

// misuse makes the error of wrong usage of a command.
func misuse(cmd *cobra.Command, format string, args ...any) error {
	_, changes := cmd.Annotations[exitMeansChanges]
	return &usageError{fmt.Sprintf("%s (see %s --help)", fmt.Sprintf(format, args...), cmd.CommandPath()), changes}
}

// flagError rewords errors of the flag parser about numbers and booleans, which are
// those of strconv.
func flagError(err error) error {
	invalid, ok := errors.AsType[*pflag.InvalidValueError](err)
	if !ok {
		return err
	}
	number, ok := errors.AsType[*strconv.NumError](err)
	if !ok {
		return err
	}
	flag := invalid.GetFlag()
	what := "a whole number"
	if flag.Value.Type() == "bool" {
		what = "true or false"
	}
	if errors.Is(number, strconv.ErrRange) {
		what += " of 64 bits"
	}
	return fmt.Errorf("invalid argument %q for \"--%s\" flag: it is %s", invalid.GetValue(), flag.Name, what)
}
