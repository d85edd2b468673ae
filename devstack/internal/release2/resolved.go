package release2

import (
	"context"
	"maps"
)

// resolve adds to a document what reads answer and no write may hold.
func resolve(ctx context.Context, db querier, service string, d document) (document, error) {
	var chain []document // the organization, the station, the document itself
	switch service {
	case "datastreams", "stations":
		for _, parent := range []struct{ service, key string }{{"organizations", "organization_id"}, {"stations", "station_id"}} {
			id, _ := d[parent.key].(string)
			found, err := read(ctx, db, parent.service, id)
			if err != nil {
				return nil, err
			}
			chain = append(chain, found)
		}
	case "organizations":
	default:
		return d, nil
	}
	levels := map[string]any{"member_level": 3, "public_level": 3}
	config := map[string]any{}
	for _, from := range append(chain, d) {
		if own, ok := from["access_levels"].(map[string]any); ok {
			maps.Copy(levels, own)
		}
		if own, ok := from["general_config"].(map[string]any); ok {
			maps.Copy(config, own)
		}
	}
	d = maps.Clone(d)
	d["access_levels_resolved"], d["general_config_resolved"] = levels, config
	if len(chain) > 0 && chain[0] != nil {
		d["organization_lookup"] = map[string]any{"name": chain[0]["name"], "slug": chain[0]["slug"]}
	}
	return d, nil
}
