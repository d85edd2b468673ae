// Package imports holds the job type that puts files of data loggers on the pipeline.
package imports
