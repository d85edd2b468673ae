// Package api serves the Job API, whose contract is proto/dendra/jobs/v1: over HTTP, and in
// process, by the same code. It works through package client, and so keeps no state.
//
// A [Server] serves the Connect protocol (JSON by POST; GET for methods without side
// effects), gRPC and gRPC-Web, with reflection and health checks. It authenticates nobody:
// package server does, and Config.Interceptors refuse what a role does not allow.
//
// Every error is a connect error with a google.rpc.ErrorInfo: its reason is one of
// ErrorReason, its domain is [Domain]. A request that is not valid also has a
// google.rpc.BadRequest, which lists the fields. Text of an error that is none of the
// contract goes into the log alone.
package api
