// Package verbs is the table of what people can change by the Job API. A row of it is a verb: to
// what it applies, what is asked before, its words, its least role, the message that asks for it
// and what its answer means. The command line, the status page, starter top, alerts, the table of
// roles and the audit log read it, and hold no rule of their own. It also has the letters of
// outcomes, for all who show them. It knows the messages of the Job API alone.
package verbs
