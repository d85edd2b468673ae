// Package archive holds the job types that keep raw messages in an S3 store for
// good, and that publish them again.
//
// The format of the archive is here too: its keys, its objects, and how it is proven that
// nothing is missing.
//
// Messages are archived in batches. A batch is a range of sequence numbers of a
// stream, from the number after the batch before it to that of a message; the
// batches of a stream so cover every number from 1. A batch has
//
//   - a record raw/v1/batches/<incarnation>/<first>.json, which says which range it is,
//     which numbers of it the stream did not hold, and which objects hold the
//     rest, with their hashes,
//   - an object raw/v1/org=<o>/source=<s>/date=YYYY-MM-DD/hour=HH/<incarnation>-<first>-<last>.ndjson.zst
//     for each organization, source and hour that has messages in it: a line of
//     JSON each, in the order of the stream, compressed with zstd. First and last
//     are those of the batch, so that a name says which record lists it.
//
// <incarnation> is the stream's name with the time at which it was made, since a stream
// that is made anew counts from 1 again: RAW.20260304T120000Z. Numbers in keys
// have 20 digits, so that keys sort as they do.
//
// The record is written first, on the condition that there is none. Its key has
// only the first number, and so of any who archive the same stream at once one
// settles where a batch ends, and who fails half-way finds when it comes back
// what it had recorded. Everything else follows from the range and the stream:
// whoever writes a batch's objects writes the same bytes. Nothing is ever
// overwritten; an object that is found with other content is left alone, and what
// should be there is kept under raw/v1/conflicts/.
package archive
