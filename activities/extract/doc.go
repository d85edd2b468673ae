// Package extract holds the job types that read data from vendors and put it on
// the pipeline.
package extract
