package cli_test

import (
	"bytes"
	"regexp"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"github.com/dendrascience/dendra-jobs/activities/platform/reversesync"
	"github.com/dendrascience/dendra-jobs/client"
	"github.com/dendrascience/dendra-jobs/internal/platform"
	"github.com/dendrascience/dendra-jobs/internal/platform/platformtest"
	"github.com/dendrascience/dendra-jobs/internal/release2"
	"github.com/dendrascience/dendra-jobs/internal/stacktest"
	"github.com/dendrascience/dendra-jobs/internal/workertest"
	platformv1 "github.com/dendrascience/dendra-jobs/proto/dendra/platform/v1"
	"github.com/dendrascience/dendra-jobs/starter/cli"
)

// progress are the lines about runs under way.
var progress = regexp.MustCompile(`(?m)^(running|waiting).*\n`)

// TestReverseSync plans and runs, finds a conflict, and overwrites it.
func TestReverseSync(t *testing.T) {
	t.Parallel()
	st := stacktest.StartOwn(t, "--only", "temporal,nats,platform")
	streams := st.Pipeline(t)
	startOrchestrators(t, st, reversesync.Metadata(streams, st.Getenv)...)
	temporal := client.New(st.Dial(t), st.Namespace)
	workertest.WaitListed(t, temporal)
	starter := func(code int, args ...string) string {
		var stdout, stderr bytes.Buffer
		program := cli.Program{
			Getenv: st.Getenv,
			Stdin:  strings.NewReader(""), Stdout: &stdout, Stderr: &stderr, Patience: time.Hour,
		}
		args = append([]string{"reverse-sync", "--nats", st.NATS, "--address", st.Temporal, "--namespace", st.Namespace}, args...)
		require.Equal(t, code, program.Execute(t.Context(), args), "%s\n%s", stdout.String(), stderr.String())
		return stdout.String() + progress.ReplaceAllString(stderr.String(), "")
	}
	const id = "5a8f00000000000000000001"
	put := func(name string) {
		_, err := platformtest.Put(t.Context(), platform.Config{URL: st.Platform.URL, Token: st.Platform.Token}, &platformv1.Resource{
			Resource: &platformv1.Resource_Organization{Organization: &platformv1.Organization{Id: id, Name: name, Slug: "erica"}},
		}, "")
		require.NoError(t, err)
	}
	put("Erica")
	nothing := `KIND          ENTITIES  TO CREATE  TO UPDATE  IN CONFLICT  GONE
vocabulary    0         0          0          0            0
organization  1         0          0          0            0
site          0         0          0          0            0
thing_type    0         0          0          0            0
station       0         0          0          0            0
datastream    0         0          0          0            0
`
	require.Equal(t, "+ organization "+id+"  Erica\n\n"+strings.Replace(nothing, "1         0 ", "1         1 ", 1), starter(2, "plan"))
	require.Contains(t, starter(0, "run"), "+ organization "+id+"  Erica\n")
	require.Equal(t, nothing, starter(0, "plan"))
	require.Equal(t, "No conflict found.\n", starter(0, "conflicts"))

	put("Renamed")
	require.Contains(t, starter(2, "plan", "--kind", "organization"), "~ organization "+id+"  Renamed\n    name: \"Erica\" → \"Renamed\"\n")
	human, err := release2.New(release2.Config{URL: st.Release2.URL, Token: st.Release2.Token + ":ada"})
	require.NoError(t, err)
	d, err := human.Get(t.Context(), "organizations", id)
	require.NoError(t, err)
	d, err = human.Patch(t.Context(), "organizations", id, d.VersionID(), release2.Patch{Set: map[string]any{"name": "Edited"}})
	require.NoError(t, err)
	conflict := "! organization " + id + "  Renamed  edited in Release 2 by " + d.UpdatedBy() + " at " + d.UpdatedAt() +
		"\n  ! name: \"Edited\" → \"Renamed\"\n"
	require.Contains(t, starter(2, "plan"), conflict)
	require.Contains(t, starter(2, "run"), conflict)
	require.Regexp(t, regexp.MustCompile(`organization +`+id+` +.* name +edited in Release 2 by `+d.UpdatedBy()), starter(0, "conflicts"))
	require.Equal(t, "No conflict found.\n", starter(0, "conflicts", "--kind", "station"))
	require.JSONEq(t, `{"conflicts": []}`, starter(0, "conflicts", "--kind", "station", "-o", "json"))

	require.Equal(t, "starter: there is no conflict about x; starter reverse-sync conflicts lists those there are\n", starter(1, "run", "--overwrite", "x"))
	require.Contains(t, starter(1, "run", "--overwrite", ""), "--overwrite it is empty")
	require.Contains(t, starter(1, "run", "--overwrite", id), "there is no terminal to ask on: add --yes to overwrite 1 document\n")
	require.Equal(t, "~ organization "+id+"  Renamed\n  ! name: \"Edited\" → \"Renamed\"\n\n", starter(0, "run", "--overwrite", id, "--yes"))
	require.Equal(t, nothing, starter(0, "plan"))
}
