// Package release2 calls the metadata API of Release 2: it lists documents, and creates
// and patches them with compare-and-set.
package release2
