// Package stacktest runs tests against the embedded stack: the real servers, as
// bin/devstack runs them.
//
//	st := stacktest.Start(t)     // one stack per test package, started by its first test
//	c := st.Dial(t)              // a Temporal client
//	w := stacktest.StartProcess(t, st, "backend", "--health-address", "127.0.0.1:0")
//
// Tests that use it are skipped with -short and need `make build` first.
// Nothing stays behind: processes are stopped by their own id at the end of
// their test, and the kernel ends those of a test run that dies.
package stacktest
