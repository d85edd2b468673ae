// Package svg reads SVG logos of strangers. [Sanitize] writes a document anew, of the elements,
// attributes and values of a list alone: nothing in it runs, loads or refers to anything outside.
// [Document.Draw] makes pixels of it, with an engine that loads nothing.
//
// What the list leaves out is dropped. What a document cannot do without, such as an entity, is an
// error.
package svg
