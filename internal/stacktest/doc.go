// Package stacktest runs tests against the embedded stack: the real servers, as
// bin/devstack runs them.
//
//	st := stacktest.Start(t)          // the stack of the package
//	st := stacktest.StartNamespace(t) // the same, with a Temporal namespace of the test's own
//	st := stacktest.StartOwn(t)       // a stack of the test's own, to kill, freeze or configure
//	c := st.Dial(t)                   // a Temporal client; st.Pipeline(t) is one of NATS
//	w := stacktest.StartProcess(t, st, "backend", "--health-address", "127.0.0.1:0")
//
// Examples have no t: their TestMain takes stacktest.Main().
//
// A test whose workers have job types of other tests takes StartNamespace. It costs a
// fifth of a second, and a Temporal server ten times the work. Tests are parallel.
//
// Tests that use it are skipped with -short and need `make build` first.
// Nothing stays behind: processes are stopped by their own id at the end of
// their test, and the kernel ends those of a test run that dies.
package stacktest
