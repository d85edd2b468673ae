// Package alerttest shows that each rule of docs/alerts.yaml fires and clears by the fault
// that it is for. The metrics are those of real workers on a real stack, and the
// expressions are evaluated by the engine of Prometheus. It is a module of its own, so that
// nothing else needs that engine.
//
// Each scrape counts as 15 seconds, whatever time it took: a rule with a window of 15
// minutes fires within seconds of the test.
package alerttest
