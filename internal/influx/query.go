package influx

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/influxdata/influxdb1-client/models"
	client "github.com/influxdata/influxdb1-client/v2"
)

// Query runs a query against a database and returns its rows; numbers are
// [json.Number], times are milliseconds since the Unix epoch. It is meant for
// people and tests: the whole answer is held in memory.
func Query(ctx context.Context, config Config, database, command string) ([]models.Row, error) {
	base, err := parseURL(config.URL)
	if err != nil {
		return nil, err
	}
	var rows []models.Row
	err = config.ask(ctx, base, url.Values{"q": {command}, "db": {database}, "epoch": {"ms"}}, func(part *client.Response) error {
		for _, result := range part.Results {
			rows = append(rows, result.Series...)
		}
		return nil
	})
	if ctx.Err() != nil {
		return nil, ctx.Err()
	}
	if err != nil {
		return nil, fmt.Errorf("influx %s: query %q: %s", base, command, config.redact(err.Error()))
	}
	return rows, nil
}

// Count is the number of values of each field of a measurement in a database, or of some
// fields: to count hundreds of them takes the server minutes at millions of points.
// A measurement that there is not has none.
func Count(ctx context.Context, config Config, database, measurement string, fields ...string) (map[string]int64, error) {
	selected := []string{"COUNT(*)"}
	if len(fields) > 0 {
		selected = nil
	}
	for _, field := range fields {
		selected = append(selected, "COUNT("+QuoteIdentifier(field)+") AS "+QuoteIdentifier("count_"+field))
	}
	rows, err := Query(ctx, config, database, "SELECT "+strings.Join(selected, ", ")+" FROM "+QuoteIdentifier(measurement))
	if err != nil {
		return nil, err
	}
	counts := map[string]int64{}
	for _, row := range rows {
		for i, column := range row.Columns {
			if column == "time" || len(row.Values) == 0 {
				continue
			}
			number, ok := row.Values[0][i].(json.Number)
			if !ok {
				return nil, fmt.Errorf("influx %s: a count of %s is a %T", config.URL, column, row.Values[0][i])
			}
			n, err := number.Int64()
			if err != nil {
				return nil, fmt.Errorf("influx %s: a count of %s: %w", config.URL, column, err)
			}
			counts[column[len("count_"):]] = n
		}
	}
	return counts, nil
}

// Databases lists the databases of a server.
func Databases(ctx context.Context, config Config) ([]string, error) {
	return names(ctx, config, "", "SHOW DATABASES")
}

// MeasurementNames lists the measurements of a database, also those without fields.
func MeasurementNames(ctx context.Context, config Config, database string) ([]string, error) {
	return names(ctx, config, database, "SHOW MEASUREMENTS")
}

// MadeByLoad reports whether [Writer.CreateDatabase] has made a database.
func MadeByLoad(ctx context.Context, config Config, database string) (bool, error) {
	policies, err := names(ctx, config, database, "SHOW RETENTION POLICIES ON "+QuoteIdentifier(database))
	return slices.Contains(policies, madeByLoad), err
}

// names are the first column of an answer.
func names(ctx context.Context, config Config, database, command string) ([]string, error) {
	rows, err := Query(ctx, config, database, command)
	if err != nil {
		return nil, config.schemaError(config.URL, database, err)
	}
	var list []string
	for _, row := range rows {
		for _, value := range row.Values {
			name, ok := value[0].(string)
			if !ok {
				return nil, fmt.Errorf("influx %s: a name is a %T", config.URL, value[0])
			}
			list = append(list, name)
		}
	}
	return list, nil
}

// DropDatabase removes a database. It is no error if there is none.
func DropDatabase(ctx context.Context, config Config, database string) error {
	_, err := Query(ctx, config, "", "DROP DATABASE "+QuoteIdentifier(database))
	return config.schemaError(config.URL, database, err)
}

// DropMeasurement removes a measurement of a database with all its points. It is no error
// if there is none.
func DropMeasurement(ctx context.Context, config Config, database, measurement string) error {
	_, err := Query(ctx, config, database, "DROP MEASUREMENT "+QuoteIdentifier(measurement))
	if err != nil && strings.Contains(err.Error(), "measurement not found") {
		return nil
	}
	return config.schemaError(config.URL, database, err)
}
