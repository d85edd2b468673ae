package exports

import (
	"github.com/go-json-experiment/json/jsontext"
)

// file is a file under way: the rows of one series.
type file interface {
	// row adds a row: nanoseconds since 1970, and JSON of the columns.
	row(at int64, values []jsontext.Value) error
	// bytes is about what is held in memory.
	bytes() int64
	// close gives the file.
	close() ([]byte, error)
}

// newFile begins a file. The series is one of the spec's.
func (s *Spec) newFile(of Series) (file, error) {
	switch s.Format {
	case FormatParquet:
		return newParquet(of)
	case FormatNetCDF:
		return newNetCDF(of), nil
	}
	return newCSV(of, s.Compression)
}

// kind is the end of the names of files, and their media type.
func (s *Spec) kind() (extension, mediaType string) {
	switch s.Format {
	case FormatParquet:
		return ".parquet", "application/vnd.apache.parquet"
	case FormatNetCDF:
		return ".nc", "application/x-netcdf"
	}
	switch s.Compression {
	case CompressionGzip:
		return ".csv.gz", "application/gzip"
	case CompressionZstd:
		return ".csv.zst", "application/zstd"
	case CompressionZip:
		return ".zip", "application/zip"
	}
	return ".csv", "text/csv; charset=utf-8"
}
