// Package reversesync brings the metadata documents of Release 2 in line with the
// entities of Release 3.
//
// What an entity means in Release 2 is a [Projection]: the fields that mapping.go maps,
// as canonical JSON. A record of each entity holds the hash of each field that was last
// in line. A field of a document that is neither as in the record nor as it should be
// was edited in Release 2. Such a document is a [Conflict]: it is left alone until the
// edit and the entity agree, or an operator has it overwritten.
package reversesync
