// Package loggerfiles has what the readers of data loggers' files share: records,
// columns, refused lines, and the clocks of files. Each format has a package below:
// toa5, tob, hobo and plaincsv. Package unpack opens compressed files and folders of
// a zip.
//
// Readers hold one line or frame in memory at a time, whatever the size of a file.
package loggerfiles
