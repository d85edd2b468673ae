package jobsfile

import (
	"reflect"
	"strings"

	"github.com/dendrascience/dendra-jobs/job"
)

// modeTable is a mode as it stands in a job: a table under a key.
type modeTable struct {
	key         string
	mode        job.Mode
	settings    reflect.Type // a pointer to a struct
	description string
}

// modeTables lists the modes in the order of the fields of [job.Trigger].
func modeTables() []modeTable {
	schedule := reflect.TypeFor[job.Trigger]()
	tables := make([]modeTable, schedule.NumField())
	for i := range tables {
		field := schedule.Field(i)
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		var only job.Trigger
		reflect.ValueOf(&only).Elem().Field(i).Set(reflect.New(field.Type.Elem()))
		tables[i] = modeTable{
			key:         key,
			mode:        only.Mode(),
			settings:    field.Type,
			description: field.Tag.Get("help"),
		}
	}
	return tables
}

// modesOf lists the modes that a job type allows.
func modesOf(t job.Type) []modeTable {
	var allowed []modeTable
	for _, m := range modeTables() {
		if t.Allows(m.mode) {
			allowed = append(allowed, m)
		}
	}
	return allowed
}
