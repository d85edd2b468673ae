// Package endtoend holds the tests of the main job as operators run it: jobs.toml
// and bin/starter, Temporal, the worker binaries, the S3 store, the pipeline and
// InfluxDB, all real, with crashes in between. It has no code of its own.
package endtoend
