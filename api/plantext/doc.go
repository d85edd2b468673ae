// Package plantext writes plans, drift, logs and what runs did for people. The command line and
// the status page show the same lines.
package plantext
