package workers

import (
	"errors"
	"fmt"
	"maps"
	"os"
	"runtime/debug"
	"slices"
	"strings"

	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/errclass"
	"github.com/dendrascience/dendra-jobs/job/schema"
)

// Environment variables of every worker binary, besides those of its flags.
const (
	variableService = "DENDRA_SERVICE"
	variableTags    = "DENDRA_TAGS"

	variableLogFormat = "DENDRA_LOG_FORMAT"
)

// ParseTags reads tags of the form NAME=VALUE,NAME=VALUE.
func ParseTags(text string) (map[string]string, error) {
	tags := map[string]string{}
	for part := range strings.SplitSeq(text, ",") {
		if part = strings.TrimSpace(part); part == "" {
			continue
		}
		name, value, ok := strings.Cut(part, "=")
		if !ok {
			return nil, fmt.Errorf("%.80q is not a tag: write NAME=VALUE", part)
		}
		if err := job.CheckTag(name, value); err != nil {
			return nil, err
		}
		tags[name] = value
	}
	return tags, nil
}

// tagFlag is a flag that may be given several times.
type tagFlag struct{ tags map[string]string }

// String implements flag.Value.
func (f tagFlag) String() string {
	var parts []string
	for _, name := range slices.Sorted(maps.Keys(f.tags)) {
		parts = append(parts, name+"="+f.tags[name])
	}
	return strings.Join(parts, ",")
}

// Set implements flag.Value.
func (f tagFlag) Set(text string) error {
	tags, err := ParseTags(text)
	maps.Copy(f.tags, tags)
	return err
}

// hostName is the name of the machine.
func hostName() string {
	name, err := os.Hostname()
	if err != nil || name == "" {
		return "unknown"
	}
	return name
}

// serviceName makes the name of a service from that of a machine.
func serviceName(host string) string {
	name := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= '0' && r <= '9', r == '.', r == '_', r == '-':
			return r
		}
		return '-'
	}, strings.ToLower(host))
	name = strings.TrimLeft(name, "._-")
	const most = 56 // leaves room for a number
	if len(name) > most {
		name = name[:most]
	}
	if name == "" {
		return "unknown"
	}
	return name
}

func (c Config) validateService() []error {
	var problems []error
	if err := job.CheckKey("service", c.Service); err != nil {
		problems = append(problems, err)
	}
	for _, name := range slices.Sorted(maps.Keys(c.Tags)) {
		if name == job.TagHost || name == job.TagName {
			problems = append(problems, fmt.Errorf("tag %s is set by the worker itself", name))
		} else if err := job.CheckTag(name, c.Tags[name]); err != nil {
			problems = append(problems, err)
		}
	}
	if c.ServiceTimeout < minServiceTimeout {
		problems = append(problems, fmt.Errorf("service timeout %s is shorter than %s", c.ServiceTimeout, minServiceTimeout))
	}
	return problems
}

// describe is what the process announces of itself, apart from its name.
func (h *host) describe() contract.Service {
	service := contract.Service{
		Worker:     h.Worker,
		Tags:       map[string]string{job.TagHost: hostName()},
		Identity:   h.identity,
		PID:        os.Getpid(),
		Build:      readBuild(),
		Deployment: h.Deployment, BuildID: h.BuildID,
		Slots:     h.MaxConcurrentRuns,
		Timeout:   job.Duration(h.ServiceTimeout),
		KeepsLogs: h.RunLogs != nil, PayloadKeys: h.payloadKeys,
	}
	maps.Copy(service.Tags, h.Tags)
	for _, t := range h.Types {
		served := contract.ServedType{Name: t.Name, Description: t.Description, Modes: t.Modes}
		if schema := h.schemas[t.Name]; schema != nil {
			served.SpecSchema = schema.JSON()
		}
		service.Types = append(service.Types, served)
	}
	return service
}

// specSchemas makes the schemas of the specs of job types, by their names. A spec
// that is a map takes everything, and has none.
func specSchemas(types []job.Type) (map[string]*schema.Schema, error) {
	schemas := map[string]*schema.Schema{}
	var errs []error
	for _, t := range types {
		schema, _, err := schema.OfType(t)
		if err != nil {
			errs = append(errs, err)
		}
		schemas[t.Name] = schema
	}
	return schemas, errors.Join(errs...)
}

// checkSpec checks the spec of a job by the schema that the process announces.
func (h *host) checkSpec(j job.Job) error {
	schema := h.schemas[j.Type]
	if schema == nil {
		return nil
	}
	var texts []string
	for _, problem := range schema.CheckText(j.Spec) {
		texts = append(texts, problem.String())
	}
	if len(texts) == 0 {
		return nil
	}
	return job.Fail(errclass.InvalidSpec, "job %s: %s", j.ID, strings.Join(texts, "; "))
}

// revision is the commit that the program was built from, set by the linker
// where the Go command does not record it.
var revision string

func readBuild() contract.Build {
	info, ok := debug.ReadBuildInfo()
	if !ok {
		return contract.Build{Revision: revision}
	}
	build := contract.Build{Module: info.Main.Path, Version: info.Main.Version, Revision: revision}
	for _, setting := range info.Settings {
		if setting.Key == "vcs.revision" {
			build.Revision = setting.Value
		}
	}
	return build
}
