// Package server is the HTTP server of "starter serve": the Job API, and whatever is put
// beside it, such as the status page and work in the background.
//
// A request goes through these steps. It is held against limits, and against the origin of
// the page that sent it. Package auth finds out who sends it, before its body is read. Then
// the API's own interceptors hold the call against the table of roles, and package audit
// writes down what changes something. Calls within the process go through the interceptors
// too.
//
// Replicas know nothing of each other: all state is in Temporal.
package server
