package ldmp_test

import (
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/internal/ldmp"
)

func TestFormatSpec(t *testing.T) {
	t.Parallel()
	spec, err := ldmp.FormatSpec([]ldmp.Group{
		{Station: "stn_a", Table: "TenMin", Order: ldmp.LoggedWithHoles, Start: ldmp.AtTime(time.Date(2026, 1, 31, 23, 50, 0, 0, time.UTC))},
		{Station: "stn_b", Table: "Hr", Start: ldmp.AtOldest()},
		{Station: "stn_b", Table: "Day", Order: ldmp.Collected, Start: ldmp.RelativeToNewest(36 * time.Hour)},
		{Station: "stn_c", Table: "Day", Start: ldmp.AtNewest()},
		{Station: "stn_d", Table: "Day", Start: ldmp.AtTime(time.Date(2026, 1, 31, 23, 50, 0, 999_999_999, time.UTC))},
		{Station: "stn_e", Table: "Day"},
	})
	require.NoError(t, err)
	require.Equal(t, `--output-format=xml `+
		`{stn_a TenMin --order-option=logged-with-holes --start-option={at-time {2026 01 31 23:50:00.00}}} `+
		`{stn_b Hr --order-option=logged-with-holes --start-option=at-oldest} `+
		`{stn_b Day --order-option=collected --start-option={relative-to-newest 129600}} `+
		`{stn_c Day --order-option=logged-with-holes --start-option=at-newest} `+
		`{stn_d Day --order-option=logged-with-holes --start-option={at-time {2026 01 31 23:50:00.99}}} `+
		`{stn_e Day --order-option=logged-with-holes --start-option=at-oldest} `+
		";\r", string(spec))

	_, err = ldmp.FormatSpec(nil)
	require.Error(t, err)
	for _, name := range []string{"", "a b", "a}", "{a", "a;", "a\r", "a\x00", "--x", `a"`, "\xff"} {
		_, err = ldmp.FormatSpec([]ldmp.Group{{Station: name, Table: "t"}})
		require.Error(t, err, "%q", name)
		_, err = ldmp.FormatSpec([]ldmp.Group{{Station: "s", Table: name}})
		require.Error(t, err, "%q", name)
	}
}
