// Package orchestrate says which jobs an integration config has, brings them about in the
// order of the pipeline, and says what state they are in.
package orchestrate
