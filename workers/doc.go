// Package workers hosts job types: it connects to Temporal, registers the
// handlers and the workflows, reports the process's health, and drains on
// SIGTERM. The binaries backend, extract and load are a few lines on it; so is a
// worker in another repository that brings job types of its own.
//
//	func main() {
//		workers.Main(workers.Program{
//			Worker: "weather",
//			Types:  func(workers.Environment) ([]job.Type, error) { return []job.Type{forecast}, nil },
//		})
//	}
package workers
