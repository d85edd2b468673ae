package cli

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dendrascience/dendra-jobs/job"
)

// filters are the flags by which jobs and runs are found.
type filters struct {
	typeName string
	owner    job.Owner
	tags     map[string]string
	mode     job.Mode
	names    []string // of the flags
}

// register adds the flags; what is the word of their help: "jobs", "runs".
func (f *filters) register(i *invocation, cmd *cobra.Command, what string, modes ...job.Mode) {
	flags := cmd.Flags()
	flags.Var(nameValue{&f.typeName}, "type", "only "+what+" of this type, in CamelCase or snake_case")
	flags.Var(ownerValue{&f.owner}, "owner", "only "+what+" of this owner: organization:NAME or user:NAME")
	flags.Var(tagsValue{&f.tags}, "tag", "only "+what+" with this tag, NAME=VALUE or NAME; may be repeated")
	flags.Var(choose(&f.mode, modes...), "mode", "only "+what+" of this mode: "+strings.Join(words(modes), ", "))
	completeFixed(cmd, "type", i.typeNames()...)
	completeFixed(cmd, "mode", words(modes)...)
	f.names = append(f.names, "type", "owner", "tag", "mode")
}

// given lists the filters that were given.
func (f *filters) given(cmd *cobra.Command) []string {
	return slices.DeleteFunc(slices.Clone(f.names), func(name string) bool { return !cmd.Flags().Changed(name) })
}

// jobType is the name of the job type as definitions have it. An unknown name is used
// as it is, because Temporal may have jobs of an external type.
func (f *filters) jobType(i *invocation) string {
	if f.typeName == "" {
		return ""
	}
	if t, err := i.typeNamed(f.typeName); err == nil {
		return t.Name
	}
	return f.typeName
}

// checkMatch returns an error if nothing was found because the job type is unknown.
func (f *filters) checkMatch(i *invocation, found int) error {
	if f.typeName == "" || found > 0 {
		return nil
	}
	_, err := i.typeNamed(f.typeName)
	return err
}

// tagsValue is the value of a flag that takes NAME=VALUE or NAME, several times.
type tagsValue struct{ value *map[string]string }

var _ pflag.Value = tagsValue{}

// String implements pflag.Value.
func (t tagsValue) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(*t.value)) {
		parts = append(parts, name+"="+(*t.value)[name])
	}
	return strings.Join(parts, ",")
}

// Type implements pflag.Value.
func (tagsValue) Type() string { return "NAME=VALUE" }

// Set implements pflag.Value.
func (t tagsValue) Set(text string) error {
	name, value, valued := strings.Cut(text, "=")
	if name == "" || valued && value == "" {
		return fmt.Errorf("a tag is NAME=VALUE, or NAME for any value")
	}
	if *t.value == nil {
		*t.value = map[string]string{}
	}
	(*t.value)[name] = value
	return nil
}
