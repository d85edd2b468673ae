// Package errclass lists the classes of errors that runs and quarantined messages of this
// project have. Each has a kind, which decides about retries, order and quarantine, and
// says what people can do about it. docs/errors.md is made from the list.
//
// Handlers of other repositories have classes of their own, which the list does not need.
package errclass

import (
	"bytes"
	"fmt"
	"strings"
)

// Kind says what has to happen after an error.
type Kind string

// The kinds of errors.
const (
	// Transient errors are retried: another attempt may succeed. What fails again and
	// again goes to quarantine, where there is one. It is the kind of errors that have
	// none.
	Transient Kind = ""
	// Unavailable means that something that the work needs cannot be used for now: a server
	// is away or busy, or refuses this worker until someone mends its settings. It is
	// retried. The input keeps its place in the order, and never goes to quarantine.
	Unavailable Kind = "unavailable"
	// Permanent means that every attempt with this input would end the same way. It is not
	// retried, and the input goes to quarantine at once, where there is one.
	Permanent Kind = "permanent"
	// Misconfigured means that a spec, a setting or a credential is wrong. It is not
	// retried. Every input would fail, so that the work ends, and none goes to quarantine.
	Misconfigured Kind = "misconfigured"
)

// Kinds are all of them.
func Kinds() []Kind { return []Kind{Transient, Unavailable, Permanent, Misconfigured} }

// Final reports whether a retry cannot help.
func (k Kind) Final() bool { return k == Permanent || k == Misconfigured }

// KeepsInput reports whether an input which fails so is not at fault: it never goes to quarantine.
func (k Kind) KeepsInput() bool { return k == Unavailable || k == Misconfigured }

// String is a word for people.
func (k Kind) String() string {
	if k == Transient {
		return "transient"
	}
	return string(k)
}

// rule is what the reference says of a kind.
func (k Kind) rule() string {
	switch k {
	case Unavailable:
		return "retried; the input keeps its place in the order, and never goes to quarantine"
	case Permanent:
		return "not retried; the input goes to quarantine at once"
	case Misconfigured:
		return "not retried; the work ends, and no input goes to quarantine"
	default:
		return "retried; an input that fails again and again goes to quarantine"
	}
}

// Class is a class of errors.
type Class struct {
	Name string
	Kind Kind
	// Cause and Cure are a sentence or two each: what happened, and what to do.
	Cause, Cure string
}

// Anchor names the class's section: errors.md#invalidspec.
func (c Class) Anchor() string { return "errors.md#" + strings.ToLower(c.Name) }

// group is a section of the reference.
type group struct {
	title   string
	classes []Class
}

// All are the classes, in the order of the reference.
func All() []Class {
	var all []Class
	for _, g := range groups() {
		all = append(all, g.classes...)
	}
	return all
}

// Find finds a class by its name. It reports false for a class of others.
func Find(name string) (Class, bool) {
	for _, c := range All() {
		if c.Name == name {
			return c, true
		}
	}
	return Class{}, false
}

// Reference is docs/errors.md.
func Reference() []byte {
	var b bytes.Buffer
	b.WriteString(`# Errors

The classes of errors of runs and of messages in quarantine. ` + "`starter schema --errors`" + ` writes this page from
` + "`job/errclass`" + `. Handlers of other repositories have classes of their own, which are not here.

The kind of a class decides what happens:

| kind | what happens |
|---|---|
`)
	for _, k := range Kinds() {
		fmt.Fprintf(&b, "| %s | %s |\n", k, k.rule())
	}
	b.WriteString(`
A retry is another attempt of the run, as far as ` + "`max_retry_count`" + ` allows. The next iteration of a continuous job comes
after every kind. So does the next start of a recurring one.

`)
	for _, g := range groups() {
		fmt.Fprintf(&b, "- [%s](#%s):", g.title, strings.ToLower(strings.ReplaceAll(g.title, " ", "-")))
		for i, c := range g.classes {
			if i > 0 {
				b.WriteString(",")
			}
			fmt.Fprintf(&b, " [`%s`](#%s)", c.Name, strings.ToLower(c.Name))
		}
		b.WriteString("\n")
	}
	for _, g := range groups() {
		fmt.Fprintf(&b, "\n## %s\n", g.title)
		for _, c := range g.classes {
			retried := "retried"
			if c.Kind.Final() {
				retried = "not retried"
			}
			fmt.Fprintf(&b, "\n### %s\n\n%s, %s. %s\n\n**Cure:** %s\n", c.Name, c.Kind, retried, c.Cause, c.Cure)
		}
	}
	return b.Bytes()
}
