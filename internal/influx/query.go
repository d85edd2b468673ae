package influx

import (
	"context"
	"encoding/json"
	"fmt"
	"time"

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
	if config.Timeout <= 0 {
		config.Timeout = time.Minute
	}
	c, err := client.NewHTTPClient(client.HTTPConfig{
		Addr: base, Username: config.Username, Password: config.Password, Timeout: config.Timeout,
	})
	if err != nil {
		return nil, fmt.Errorf("influx %s: %w", base, err)
	}
	defer func() { _ = c.Close() }()
	// The library takes no context, so the wait for it is bounded by its timeout.
	type outcome struct {
		response *client.Response
		err      error
	}
	done := make(chan outcome, 1)
	go func() {
		response, err := c.Query(client.NewQuery(command, database, "ms"))
		if err == nil {
			err = response.Error()
		}
		done <- outcome{response, err}
	}()
	var response *client.Response
	select {
	case o := <-done:
		if o.err != nil {
			return nil, fmt.Errorf("influx %s: query %q: %s", base, command, config.redact(o.err.Error()))
		}
		response = o.response
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	var rows []models.Row
	for _, result := range response.Results {
		rows = append(rows, result.Series...)
	}
	return rows, nil
}

// Count is the number of values of each field of a measurement in a database.
// A measurement that there is not has none.
func Count(ctx context.Context, config Config, database, measurement string) (map[string]int64, error) {
	rows, err := Query(ctx, config, database, "SELECT COUNT(*) FROM "+quoteIdentifier(measurement))
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
