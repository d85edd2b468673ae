package cli

import (
	"encoding/json"
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/starter/servers"
)

// siteFlags are the flags of doctor, setup and backup check.
type siteFlags struct {
	buckets []string
	only    []string
	file    string
}

// registerFile is for commands that look at InfluxDB.
func (f *siteFlags) registerFile(cmd *cobra.Command) {
	cmd.Flags().VarP(textValue{&f.file, argumentFile}, "file", "f", "jobs file whose InfluxDB servers are looked at too")
}

func (f *siteFlags) register(i *invocation, cmd *cobra.Command, parts []string) {
	i.natsFlag(cmd)
	cmd.Flags().StringSliceVar(&f.buckets, "bucket", []string{servers.DefaultBucket}, "`BUCKET` of the S3 store; several, or separated by commas")
	cmd.Flags().StringSliceVar(&f.only, "only", nil, "`PART` to look at; several, or separated by commas: "+strings.Join(parts, ", "))
	completeFixed(cmd, "only", parts...)
}

// siteOf makes the site of a command.
func (i *invocation) siteOf(cmd *cobra.Command, f siteFlags, parts []string) (servers.Site, error) {
	for _, part := range f.only {
		if !slices.Contains(parts, part) {
			return servers.Site{}, misuse(cmd, "--only %s is not one of %s", part, strings.Join(parts, ", "))
		}
	}
	i.quiet()
	site := i.site
	site.Getenv, site.Buckets, site.Only = i.Getenv, f.buckets, f.only
	if f.file == "" {
		return site, nil
	}
	i.connectHere() // for the job types of workers
	var err error
	site.Jobs, err = i.load(f.file)
	return site, err
}

func (i *invocation) doctorCommand() *cobra.Command {
	var f siteFlags
	cmd := &cobra.Command{
		Use:         "doctor",
		Annotations: map[string]string{exitMeansChanges: ""},
		Short:       "Check the servers and workers, and say what to do",
		Long: `doctor looks at Temporal, the workers, NATS, the S3 store, the InfluxDB servers of all
load jobs, and, if they are set, the Platform API and Release 2, and compares their
clocks with that of this machine. The settings are those of the workers. It changes
nothing but a small object in each bucket, which it removes.

Each line is ok, or wrong with what to do. Lines that are unset are about servers that
are not configured, or about what is not known yet.

Exit codes: 0 nothing is wrong, 1 error or wrong usage, 2 something is wrong.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			site, err := i.siteOf(cmd, f, servers.Parts())
			if err != nil {
				return err
			}
			done := i.waiting("the servers")
			results := servers.Check(cmd.Context(), site)
			done()
			return i.showResults(results, errChanges)
		},
	}
	f.register(i, cmd, servers.Parts())
	f.registerFile(cmd)
	return cmd
}

// minRetention is the shortest that Temporal takes.
const minRetention = 24 * time.Hour

func (i *invocation) setupCommand() *cobra.Command {
	var f siteFlags
	var retention job.Duration
	var policies []string
	cmd := &cobra.Command{
		Use:   "setup",
		Short: "Make the namespace, search attributes, streams and buckets that are missing",
		Long: `setup makes what this system needs on the servers that are there: the namespace of
Temporal with its retention and search attributes, the streams and buckets of NATS with
the replicas of DENDRA_NATS_REPLICAS, and the bucket of the archive. The settings are
those of the workers. It is safe to repeat: what is there stays as it is, but for the
retention if that is given. It says what it made and what was there.`,
		Args: arguments(),
		RunE: func(cmd *cobra.Command, _ []string) error {
			site, err := i.siteOf(cmd, f, servers.SetupParts())
			if err != nil {
				return err
			}
			if cmd.Flags().Changed("retention") && retention.Std() < minRetention {
				return misuse(cmd, "--retention %s is shorter than a day", retention)
			}
			if site.Policies, err = readPolicies(cmd, policies); err != nil {
				return err
			}
			done := i.waiting("the servers")
			results := servers.SetUp(cmd.Context(), site, retention.Std())
			done()
			return i.showResults(results, errIncomplete)
		},
	}
	f.register(i, cmd, servers.SetupParts())
	cmd.Flags().StringArrayVar(&policies, "bucket-policy", nil, "`BUCKET=FILE` with the policy of the bucket, in the store's own JSON; several")
	cmd.Flags().Var(durationOf(&retention), "retention",
		fmt.Sprintf("how long Temporal knows ended runs (default: %s for a new namespace)", job.Duration(servers.DefaultRetention)))
	return cmd
}

// readPolicies reads the files of --bucket-policy, by their buckets.
func readPolicies(cmd *cobra.Command, flags []string) (map[string]string, error) {
	policies := map[string]string{}
	for _, flag := range flags {
		bucket, file, found := strings.Cut(flag, "=")
		if !found || bucket == "" {
			return nil, misuse(cmd, "--bucket-policy %s is not of the form BUCKET=FILE", flag)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			return nil, err
		}
		if !json.Valid(text) {
			return nil, fmt.Errorf("--bucket-policy: %s is not JSON", file)
		}
		policies[bucket] = string(text)
	}
	return policies, nil
}

// showResults shows results, and gives an error if there is something to do.
func (i *invocation) showResults(results []servers.Result, unfinished error) error {
	if err := i.emit(results, func(w io.Writer) error { return writeResults(w, results) }); err != nil {
		return err
	}
	if slices.ContainsFunc(results, func(r servers.Result) bool { return r.State == servers.StateWrong }) {
		return unfinished
	}
	return nil
}

func writeResults(w io.Writer, results []servers.Result) error {
	t := newTable("STATE", "PART", "CHECK", "FOUND").wrapLast()
	for _, r := range results {
		t.add(string(r.State), r.Part, r.Check, withCure(r.Found, r.Cure))
	}
	return t.write(w)
}
