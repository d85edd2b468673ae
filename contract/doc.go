// Package contract holds what workflows, workers and clients of the job system
// agree on: names and ids, search attributes and memos, inputs and outputs,
// messages, and the states that queries answer with. It decides nothing: the code
// that changes these states is in package workflows.
package contract
