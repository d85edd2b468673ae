// Package audit writes the audit log: one line of JSON for each call of the Job API that
// changes something, allowed or refused. A line says who called what, on what, why, with
// what outcome, and how the resource was before and is after. Values that look like secrets
// are left out.
package audit
