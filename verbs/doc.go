// Package verbs says what can be done to a job, and when: the command line, the status page and
// starter top ask it, and hold no rule of their own. It also has the letters of outcomes, for all
// who show them. It knows the messages of the Job API alone.
package verbs
