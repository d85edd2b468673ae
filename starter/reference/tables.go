// Package reference writes what the code declares as pages of docs/.
package reference

import (
	"cmp"
	"fmt"
	"path"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dendrascience/dendra-jobs/api"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/contract"
	"github.com/dendrascience/dendra-jobs/internal/metrics"
	"github.com/dendrascience/dendra-jobs/internal/pipeline"
	"github.com/dendrascience/dendra-jobs/job"
	"github.com/dendrascience/dendra-jobs/job/jobsfile"
	"github.com/dendrascience/dendra-jobs/readmodel"
	"github.com/dendrascience/dendra-jobs/server"
	"github.com/dendrascience/dendra-jobs/server/audit"
	"github.com/dendrascience/dendra-jobs/server/auth"
	"github.com/dendrascience/dendra-jobs/server/watchdog"
	"github.com/dendrascience/dendra-jobs/verbs"
)

// Tables is docs/reference.md: tables of what the code declares, of the commands below root.
func Tables(root *cobra.Command) []byte {
	var p page
	p.line("# Reference\n\nTables of what the code declares. `starter schema --reference` writes this page.\n")
	p.line("- [Commands](#commands) of `starter` and their flags\n- [Workers](#workers): their flags\n- [Settings](#settings): environment variables")
	p.line("- [Roles](#roles): who may call which method of the Job API\n- [Metrics](#metrics)\n- [Alerts](#alerts)\n- [Watchdog file](#watchdog-file)\n- [Audit log](#audit-log)\n- [Statuses](#statuses) of jobs and runs\n- [Bounds](#bounds)")
	p.line("\n## Commands\n\nFlags of all commands:")
	p.flags([]*cobra.Command{root})
	p.help(root)
	p.commands(root)
	p.workers()
	p.settings()
	p.roles()
	p.metrics()
	p.alerts()
	p.watchdogFile()
	p.auditLog()
	p.statuses()
	p.bounds()
	return []byte(p.text.String())
}

type page struct{ text strings.Builder }

func (p *page) line(format string, args ...any) { fmt.Fprintf(&p.text, format+"\n", args...) }

func (p *page) row(cells ...string) {
	for _, cell := range cells {
		p.text.WriteString("| " + strings.NewReplacer("|", `\|`, "\n", " ").Replace(cell) + " ")
	}
	p.line("|")
}

func (p *page) header(cells ...string) {
	p.line("")
	p.row(cells...)
	p.line("%s|", strings.Repeat("|---", len(cells)))
}

// commands writes a section for each command of the root: its subcommands that do something, and
// the flags of these.
func (p *page) commands(root *cobra.Command) {
	for _, section := range root.Commands() {
		if section.Name() == "help" || section.Name() == "completion" {
			continue
		}
		commands := leaves(section)
		p.line("\n### %s", section.CommandPath())
		p.header("command", "what it does")
		for _, cmd := range commands {
			p.row("`"+strings.TrimSuffix(cmd.UseLine(), " [flags]")+"`", cmd.Short)
		}
		p.flags(commands)
		for _, cmd := range commands {
			if cmd.Long != "" {
				p.help(cmd)
			}
		}
	}
}

// help writes what --help says of a command.
func (p *page) help(cmd *cobra.Command) {
	p.line("\n#### %s --help\n\n```text\n%s\n```", cmd.CommandPath(), strings.TrimSpace(cmd.Long))
}

// leaves are a command and those below it that do something.
func leaves(cmd *cobra.Command) []*cobra.Command {
	var all []*cobra.Command
	if !cmd.HasSubCommands() || !cmd.DisableFlagsInUseLine { // Groups have it.
		all = append(all, cmd)
	}
	for _, below := range cmd.Commands() {
		all = append(all, leaves(below)...)
	}
	return all
}

// flags writes a row for each flag, and which of several commands have it.
func (p *page) flags(commands []*cobra.Command) {
	type flag struct{ text, value, usage string }
	var order []flag
	having := map[flag][]string{}
	for _, cmd := range commands {
		of := cmd.LocalNonPersistentFlags()
		if !cmd.HasParent() {
			of = cmd.PersistentFlags()
		}
		of.VisitAll(func(f *pflag.Flag) {
			if f.Name == "help" || f.Hidden {
				return
			}
			text, value, usage := flagTexts(f)
			each := flag{text, value, usage}
			if having[each] == nil {
				order = append(order, each)
			}
			having[each] = append(having[each], cmd.Name())
		})
	}
	if len(order) == 0 {
		return
	}
	if len(commands) == 1 {
		p.header("flag", "default", "meaning")
	} else {
		p.header("flag", "default", "meaning", "commands")
	}
	for _, each := range order {
		cells := []string{each.text, each.value, each.usage}
		switch names := having[each]; {
		case len(commands) == 1:
		case len(names) == len(commands):
			cells = append(cells, "all")
		default:
			cells = append(cells, strings.Join(names, ", "))
		}
		p.row(cells...)
	}
}

// flagTexts are the name, the default and the meaning of a flag.
func flagTexts(f *pflag.Flag) (text, value, usage string) {
	name, usage := pflag.UnquoteUsage(f)
	text = "`--" + strings.TrimSpace(f.Name+" "+name) + "`"
	if f.Shorthand != "" {
		text = "`-" + f.Shorthand + "`, " + text
	}
	value = strings.Trim(f.DefValue, "[]")
	if value == "" || value == "false" || value == "0" {
		return text, "–", usage
	}
	return text, "`" + value + "`", usage
}

// roles writes the least role of each method.
func (p *page) roles() {
	p.line("\n## Roles\n\nEach role may do what those before it may. A call that brings a definition of a job and changes")
	p.line("something needs an admin, whatever its method.")
	p.header("service", verbs.RoleViewer.String(), verbs.RoleOperator.String(), verbs.RoleAdmin.String())
	methods := map[verbs.Role][]string{}
	specs := auth.Specs()
	for n, spec := range specs {
		least := auth.Least(spec)
		methods[least] = append(methods[least], "`"+path.Base(spec.Procedure)+"`")
		service := path.Dir(spec.Procedure)
		if n+1 < len(specs) && path.Dir(specs[n+1].Procedure) == service {
			continue
		}
		cell := func(role verbs.Role) string { return strings.Join(methods[role], ", ") }
		p.row("`"+strings.TrimPrefix(path.Ext(service), ".")+"`", cell(verbs.RoleViewer), cell(verbs.RoleOperator), cell(verbs.RoleAdmin))
		clear(methods)
	}
}

func (p *page) metrics() {
	p.line("\n## Metrics\n\n[observing.md](observing.md#metrics) says who serves them.")
	p.header("metric", "kind", "labels", "meaning")
	for _, d := range metrics.Definitions() {
		labels := "–"
		if len(d.Labels) > 0 {
			labels = "`" + strings.Join(d.Labels, "`, `") + "`"
		}
		p.row("`"+d.Name+"`", d.Kind, labels, d.Help)
	}
}

func (p *page) alerts() {
	p.line("\n## Alerts\n\nAn alert fires when it has been on for so long: [watchdog](status-page.md#watchdog).")
	p.header("rule", "is on when", "severity", "fires after")
	for _, rule := range readmodel.Rules() {
		p.row("`"+rule.Word()+"`", rule.Meaning, api.Word(rule.Severity), job.Duration(rule.Hold).String())
	}
}

func (p *page) watchdogFile() {
	p.line("\n## Watchdog file\n\nThis is what a [watchdog.toml](status-page.md#the-file) may have. The [alerts](#alerts) above have their own hold and severity.")
	p.header("key", "by default", "meaning")
	for _, key := range watchdog.Keys() {
		p.row("`"+key.Name+"`", cmp.Or(key.Default, "–"), key.Meaning)
	}
}

func (p *page) auditLog() {
	p.line("\n## Audit log\n\n[serve.md](serve.md#audit-log) says when a line is written.")
	p.header("field", "meaning")
	for _, field := range audit.Fields() {
		p.row("`"+field.Name+"`", field.Meaning)
	}
}

// bounds writes the sizes and numbers that are refused, cut or left out above.
func (p *page) bounds() {
	p.line("\n## Bounds\n\nThe [job reference](job-reference.md) has those of options and specs, [limits.md](limits.md) what follows from them.")
	p.header("what", "at most")
	for _, b := range []struct {
		what string
		most string
	}{
		{"jobs file", bytesText(jobsfile.MaxBytes)},
		{"spec of a job, as JSON with escapes", bytesText(job.MaxSpecBytes)},
		{"description of a job", bytesText(job.MaxDescriptionBytes)},
		{"owner of a job", bytesText(job.MaxOwnerBytes)},
		{"`max_retry_count`", count(job.MaxRetryLimit)},
		{"interval of a continuous job, at least", job.MinInterval.String()},
		{"interval of a recurring job, at least", job.MinRecurEvery.String()},
		{"`catchup_window`, at least", job.MinCatchupWindow.String()},
		{"reason of a pause", bytesText(contract.MaxPauseReason)},
		{"runs of one backfill", count(client.MaxStarts)},
		{"runs under way that a list looks at one by one", count(client.MaxLooks)},
		{"items in a batch for a queue", count(contract.MaxBatchItems)},
		{"batch for a queue, unless it is one item", bytesText(contract.MaxBatchBytes)},
		{"cursor of a run", bytesText(contract.MaxCursorBytes)},
		{"waiting items in the state of a queue, and in an overflow page", bytesText(contract.DefaultPageSize().Bytes)},
		{"overflow pages of a queue", count(contract.MaxQueuePages)},
		{"lines in the log of a run", count(pipeline.MaxRunLogLines)},
		{"changes of a job, queue or other object in the history", count(pipeline.MaxChanges)},
		{"how long they are kept", job.Duration(pipeline.ChangesMaxAge).String()},
		{"request to the Job API", bytesText(api.MaxRequest)},
		{"the same of `PlanJobSet`, `ApplyJobSet` and `EnqueueJobs`", bytesText(api.MaxBatch)},
		{"compressed request, unpacked", bytesText(api.MaxUnpacked)},
		{"nesting of a message in a request", count(api.MaxDepth)},
		{"header of an HTTP request", bytesText(server.MaxHeader)},
		{"time for the header; for the body", job.Duration(server.HeaderTimeout).String() + "; " + job.Duration(server.BodyTimeout).String()},
		{"connection without a request", job.Duration(server.IdleTimeout).String()},
		{"connection without an authenticated call", job.Duration(server.UnknownTimeout).String()},
		{"plans, applies and enqueues of a caller at once", count(server.MaxLargeCalls)},
		{"wait of another one before it is refused", job.Duration(server.TurnTimeout).String()},
		{"audits of archives that a server has under way", count(api.MaxAudits)},
	} {
		p.row(b.what, b.most)
	}
}

// bytesText writes a size in whole KiB or MiB where it is one.
func bytesText(n int) string {
	switch {
	case n%(1<<20) == 0:
		return fmt.Sprintf("%d MiB", n>>20)
	case n%(1<<10) == 0:
		return fmt.Sprintf("%d KiB", n>>10)
	}
	return count(n) + " bytes"
}

// count writes a number with a comma between thousands.
func count(n int) string {
	if n < 1000 {
		return fmt.Sprint(n)
	}
	return fmt.Sprintf("%s,%03d", count(n/1000), n%1000)
}
