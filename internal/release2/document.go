package release2

import (
	"fmt"
	"math/big"
	"net/url"
	"regexp"
)

// Document is a JSON object of a service.
type Document map[string]any

// ID is the document's id.
func (d Document) ID() string { return d.text("_id") }

// VersionID changes with every write of the document.
func (d Document) VersionID() string { return d.text("version_id") }

// UpdatedAt is when the document was written last.
func (d Document) UpdatedAt() string { return d.text("updated_at") }

// UpdatedBy is the id of the user who wrote the document last.
func (d Document) UpdatedBy() string { return d.text("updated_by") }

func (d Document) text(key string) string {
	text, _ := d[key].(string)
	return text
}

// Patch is a change of a document.
type Patch struct {
	Set   map[string]any
	Unset []string
}

func (p Patch) body() map[string]any {
	body := map[string]any{}
	if len(p.Set) > 0 {
		body["$set"] = p.Set
	}
	if len(p.Unset) > 0 {
		unset := map[string]string{}
		for _, key := range p.Unset {
			unset[key] = "" // the only value that the server takes
		}
		body["$unset"] = unset
	}
	return body
}

// numeric is an id that the server would read as a number in a query, and then never
// find.
var numeric = regexp.MustCompile(`^[0-9]+([eE][0-9]+)?$`)

// versionQuery is a query that matches one version_id.
//
// For an id that looks like a number it is the interval between two ids that do not: the
// nearest below that ends in f, and the nearest above that ends in a. That matches up to
// ten ids, which differ in the last digit. To be
// taken for the version that was read, an edit would have to be made within a second of
// it, by the same process of the server.
func versionQuery(id string) url.Values {
	if !numeric.MatchString(id) {
		return url.Values{"version_id": {id}}
	}
	begin := id[:len(id)-1]
	below, _ := new(big.Int).SetString(begin+"0", 16) // of digits alone
	below.Sub(below, big.NewInt(1))
	return url.Values{"version_id[$gt]": {fmt.Sprintf("%0*x", len(id), below)}, "version_id[$lt]": {begin + "a"}}
}
