// Package exports holds the job types that write points of InfluxDB into files to download,
// and that remove these files when their time is over.
package exports
