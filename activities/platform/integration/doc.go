// Package integration has the job types that bring the platform's integrations to life.
package integration
