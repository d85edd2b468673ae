package check

import (
	"fmt"
	"io"
	"strings"
	"text/tabwriter"
	"time"

	"github.com/dendrascience/dendra-jobs/soak/ledger"
)

// shown is how many violations of an invariant are printed.
const shown = 20

// Write prints what there was and what was found.
func (b Book) Write(w io.Writer, r *Report) error {
	var text strings.Builder
	fmt.Fprintf(&text, "\nseed %d, %s under faults\n\n", b.Start.Seed, b.Start.Took)
	of := func(is func(ledger.Fault) bool) string {
		counts := map[string]int{}
		for _, f := range b.Faults {
			if is(f) {
				counts[f.Kind]++
			}
		}
		return listed(counts)
	}
	table := tabwriter.NewWriter(&text, 0, 0, 2, ' ', 0)
	isOther := func(f ledger.Fault) bool {
		return f.Host != "" || f.Target == ledger.StackTarget || f.Target == ledger.StarterTarget
	}
	fmt.Fprintf(table, "workers\t%s\n", of(func(f ledger.Fault) bool { return !isOther(f) }))
	fmt.Fprintf(table, "stack\t%s\n", of(func(f ledger.Fault) bool { return f.Host == "" && f.Target == ledger.StackTarget }))
	fmt.Fprintf(table, "hosts\t%s\n", of(func(f ledger.Fault) bool { return f.Host != "" }))
	fmt.Fprintf(table, "producers\t%s\n", of(func(f ledger.Fault) bool { return f.Target == ledger.StarterTarget }))
	fmt.Fprintf(table, "verbs\t%s\n", b.verbs())
	fmt.Fprintf(table, "work\t%s\n", b.work(r))
	fmt.Fprintf(table, "starts without a run\t%s\n", listed(r.Reasons))
	fmt.Fprintf(table, "near a fault or a change\t%d attempts repeated, %d starts not accounted for\n\n", r.Repeated, r.Unaccounted)
	fmt.Fprintln(table, "INVARIANT\tCHECKED\tVIOLATIONS")
	for _, i := range Invariants() {
		fmt.Fprintf(table, "%s\t%d\t%d\n", i, r.Checked[i], len(r.Violations[i]))
	}
	if err := table.Flush(); err != nil {
		return err
	}
	for _, i := range Invariants() {
		found := r.Violations[i]
		if len(found) == 0 {
			continue
		}
		fmt.Fprintf(&text, "\n%s:\n", i)
		for _, sentence := range found[:min(len(found), shown)] {
			fmt.Fprintf(&text, "  %s\n", sentence)
		}
		if more := len(found) - shown; more > 0 {
			fmt.Fprintf(&text, "  and %d more\n", more)
		}
	}
	text.WriteString(b.recoveries())
	fmt.Fprintf(&text, "\n%d violations\n", r.Count())
	_, err := io.WriteString(w, text.String())
	return err
}

// listed writes counts: "SIGKILL 3, SIGTERM 1".
func listed(counts map[string]int) string {
	var parts []string
	for _, name := range keys(counts) {
		parts = append(parts, fmt.Sprintf("%s %d", name, counts[name]))
	}
	if len(parts) == 0 {
		return "none"
	}
	return strings.Join(parts, ", ")
}

// verbs counts the verbs by name; those that were refused or not answered stand apart.
func (b Book) verbs() string {
	given, refused := map[string]int{}, 0
	for _, v := range b.Verbs {
		given[v.Name]++
		if !v.OK {
			refused++
		}
	}
	return fmt.Sprintf("%s; %d of them refused or not answered", listed(given), refused)
}

func (b Book) work(r *Report) string {
	attempts, items, oneShots := 0, 0, 0
	var last time.Duration
	for _, line := range b.Work {
		if line.What == ledger.Begin {
			attempts++
		}
		last = max(last, line.At)
	}
	for _, one := range b.asked() {
		if one.queue == "" {
			oneShots++
		} else {
			items++
		}
	}
	return fmt.Sprintf("%d items, %d one-shots, %d starts of %d recurring jobs; %d attempts in %s",
		items, oneShots, r.Checked[Starts], len(b.Recurring), attempts, (last - b.Start.At).Round(time.Second))
}
