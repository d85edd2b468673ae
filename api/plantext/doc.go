// Package plantext writes plans and drift for people. The command line and the status page
// show the same lines.
package plantext
