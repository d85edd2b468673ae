// Package jobsfile reads jobs.toml into jobs, and writes jobs as its tables.
//
// A file is read as a whole: every problem in it is reported, each with the
// line and the column of the key or value at fault, and a file with a problem
// gives no jobs. The format is described in docs/jobs-toml.md.
//
// Which options and modes there are, how they are called and what they hold
// comes from the fields of [job.Options] and [job.Trigger]; there is no list
// of names here.
package jobsfile
