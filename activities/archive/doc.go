// Package archive holds the job types that keep raw messages in an S3 store for
// good, and that publish them again.
package archive
