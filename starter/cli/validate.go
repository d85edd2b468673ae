package cli

import (
	"cmp"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobsfile"
	"github.com/dendrascience/dendra-jobs/server"
)

// EnvJobsFile is the environment variable of the jobs file that commands read by default.
const EnvJobsFile = "DENDRA_JOBS_FILE"

func (i *invocation) defaultFile() string { return cmp.Or(i.Getenv(EnvJobsFile), "jobs.toml") }

func (i *invocation) validateCommand() *cobra.Command {
	file := i.defaultFile()
	cmd := &cobra.Command{
		Use:   "validate [FILE]",
		Short: "Check a jobs file",
		Long: `validate checks a jobs file without Temporal. By default that is $DENDRA_JOBS_FILE,
else jobs.toml. Every problem is a line "file:line:column: message" on standard error;
with -o json standard output is a list of all problems, empty if there is none.

A job type that is not built into this program is looked up in Temporal: among those
that workers announce, and those of applied jobs. Without Temporal it is unknown. With
--server the server looks it up.`,
		Args:              arguments("[" + argumentFile + "]"),
		ValidArgsFunction: completeFile,
		RunE: func(cmd *cobra.Command, args []string) error {
			path := file
			switch {
			case len(args) > 0 && cmd.Flags().Changed("file"):
				return misuse(cmd, "give either FILE or -f")
			case len(args) > 0:
				path = args[0]
			}
			return i.validate(path)
		},
	}
	cmd.Flags().VarP(textValue{&file, argumentFile}, "file", "f", "jobs file, as with plan and apply")
	return cmd
}

func (i *invocation) validate(path string) error {
	r, err := i.jobTypes().ReadJobs(i.ctx, path)
	if err != nil {
		return err
	}
	if r.Incomplete != nil {
		i.noteIncomplete(r.Incomplete)
	}
	if len(r.Problems) > 0 {
		if err := i.emit(r.Problems, func(io.Writer) error { i.noteProblems(r.Problems); return nil }); err != nil {
			return err
		}
		return problemsError(path, len(r.Problems))
	}
	return i.emit([]jobsfile.Problem{}, func(w io.Writer) error {
		if len(r.File.Jobs) == 0 {
			_, err := fmt.Fprintf(w, "%s has no jobs\n", path)
			return err
		}
		_, err := fmt.Fprintf(w, "%s: %s\n", path, plural(len(r.File.Jobs), "job is valid", "jobs are valid"))
		return err
	})
}

// jobTypes finds job types for what a file, or a command line, says.
func (i *invocation) jobTypes() server.JobTypes {
	return server.JobTypes{Own: i.Types, API: i.api, Note: func(text string) { i.note("%s", clean(text)) }}
}

// load reads the jobs of a file, and shows all problems if the file has any.
func (i *invocation) load(path string) ([]job.Job, error) {
	r, err := i.jobTypes().ReadJobs(i.ctx, path)
	if err != nil {
		return nil, err
	}
	switch {
	case len(r.Problems) == 0:
		return r.File.Jobs, nil
	case r.Incomplete != nil && r.OnlyUnknown():
		i.note("It is not known whether workers have the job types of %s that are not built in: %s.", path, clean(strings.Join(r.UnknownTypes(), ", ")))
		return nil, r.Incomplete
	case r.Incomplete != nil:
		i.noteIncomplete(r.Incomplete)
	}
	i.noteProblems(r.Problems)
	return nil, problemsError(path, len(r.Problems))
}

func (i *invocation) noteIncomplete(why error) {
	i.note("Job types of other programs may be missing: %s.", clean(apiText(why)))
}

func (i *invocation) noteProblems(problems []jobsfile.Problem) {
	for _, problem := range problems {
		i.note("%s", clean(problem.String()))
	}
}

func problemsError(path string, n int) error {
	return fmt.Errorf("%s has %s", path, plural(n, "problem", "problems"))
}
