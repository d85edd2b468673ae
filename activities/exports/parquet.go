package exports

import (
	"bytes"
	"fmt"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
	"github.com/parquet-go/parquet-go"

	"github.com/dendrascience/dendra-jobs/internal/influx"
	"github.com/dendrascience/dendra-jobs/job"
)

// parquetFile is an Apache Parquet file: time is a timestamp of nanoseconds in UTC, and the
// other columns are optional, of the type that the field has. The key series of its
// metadata has station, table, columns and units as JSON.
type parquetFile struct {
	out     bytes.Buffer
	writer  *parquet.Writer //nolint:staticcheck // Its rows have no Go type, for which the other one is.
	types   []influx.FieldType
	rows    []parquet.Row // gathered
	arena   []parquet.Value
	strings []byte
}

// rowsAtOnce is how many rows are given to the writer at once.
const rowsAtOnce = 512

// columnsInOrder is a group whose fields keep their order: that of a [parquet.Group] is by
// name.
type columnsInOrder struct {
	parquet.Group

	fields []parquet.Field
}

// Fields implements [parquet.Node].
func (c columnsInOrder) Fields() []parquet.Field { return c.fields }

// newParquet begins a file. A field with the name time, which InfluxDB has not, would be lost.
func newParquet(of Series) (file, error) {
	f := &parquetFile{}
	nodes := parquet.Group{"time": parquet.Compressed(parquet.Timestamp(parquet.Nanosecond), &parquet.Zstd)}
	names := []string{"time"}
	for _, c := range of.Columns {
		nodes[c.Field] = parquet.Compressed(parquet.Optional(leaf(c.Type)), &parquet.Zstd)
		names = append(names, c.Field)
		f.types = append(f.types, c.Type)
	}
	sorted := nodes.Fields()
	byName := map[string]parquet.Field{}
	for _, field := range sorted {
		byName[field.Name()] = field
	}
	root := columnsInOrder{Group: nodes}
	for _, name := range names {
		root.fields = append(root.fields, byName[name])
	}
	f.writer = parquet.NewWriter(&f.out, parquet.NewSchema("series", root), //nolint:staticcheck // As above.
		parquet.CreatedBy("dendra-jobs", "", ""), parquet.KeyValueMetadata("series", string(job.EncodeJSON(of))))
	return f, nil
}

func leaf(of influx.FieldType) parquet.Node {
	switch of {
	case influx.FieldInteger:
		return parquet.Leaf(parquet.Int64Type)
	case influx.FieldString:
		return parquet.String()
	case influx.FieldBoolean:
		return parquet.Leaf(parquet.BooleanType)
	case influx.FieldFloat:
	}
	return parquet.Leaf(parquet.DoubleType)
}

func (f *parquetFile) row(at int64, values []jsontext.Value) error {
	begin := len(f.arena)
	f.arena = append(f.arena, parquet.Int64Value(at).Level(0, 0, 0))
	for i, v := range values {
		value, err := f.value(f.types[i], v)
		if err != nil {
			return err
		}
		if value.IsNull() {
			f.arena = append(f.arena, value.Level(0, 0, i+1))
		} else {
			f.arena = append(f.arena, value.Level(0, 1, i+1))
		}
	}
	f.rows = append(f.rows, parquet.Row(f.arena[begin:len(f.arena):len(f.arena)]))
	if len(f.rows) < rowsAtOnce {
		return nil
	}
	return f.flush()
}

// value is a value of a column's type.
func (f *parquetFile) value(of influx.FieldType, v jsontext.Value) (parquet.Value, error) {
	if v.Kind() == 'n' {
		return parquet.NullValue(), nil
	}
	switch of {
	case influx.FieldInteger:
		n, err := strconv.ParseInt(string(v), 10, 64)
		return parquet.Int64Value(n), wrongType(of, v, err)
	case influx.FieldFloat:
		x, err := strconv.ParseFloat(string(v), 64)
		return parquet.DoubleValue(x), wrongType(of, v, err)
	case influx.FieldBoolean:
		return parquet.BooleanValue(v.Kind() == 't'), wrongKind(of, v, v.Kind() == 't' || v.Kind() == 'f')
	case influx.FieldString:
	}
	if err := wrongKind(of, v, v.Kind() == '"'); err != nil {
		return parquet.Value{}, err
	}
	begin := len(f.strings)
	var err error
	f.strings, err = jsontext.AppendUnquote(f.strings, v)
	return parquet.ByteArrayValue(f.strings[begin:]), err
}

func wrongType(of influx.FieldType, v jsontext.Value, err error) error {
	return wrongKind(of, v, err == nil)
}

func wrongKind(of influx.FieldType, v jsontext.Value, is bool) error {
	if is {
		return nil
	}
	return fmt.Errorf("a value of type %s is %s: the field has got another type meanwhile", of, job.Cut(string(v), 60))
}

func (f *parquetFile) flush() error {
	_, err := f.writer.WriteRows(f.rows)
	f.rows, f.arena, f.strings = f.rows[:0], f.arena[:0], f.strings[:0]
	return err
}

func (f *parquetFile) bytes() int64 { return f.writer.Size() + int64(f.out.Len()) }

func (f *parquetFile) close() ([]byte, error) {
	if err := f.flush(); err != nil {
		return nil, err
	}
	if err := f.writer.Close(); err != nil {
		return nil, err
	}
	return f.out.Bytes(), nil
}
