package reversesync

// Field says how a field of an entity becomes one of a document.
type Field struct {
	// From is the field of the entity; behind a dot, that of a message in it. Empty for
	// a field of the document that has the same value in all.
	From string
	// To is the key of the document; behind a dot, that of an object in it, whose other
	// keys stay as they are. "terms.*" is one key for each key of the value.
	To string
	// As is how the value is converted. Empty is as it is.
	As Conversion
	// Else is the value if the entity has none. Without it the document has none.
	Else any
}

// Release 2 has no place for what is not in these tables; mapping_test.go lists it.

var vocabularyFields = []Field{
	{From: "description", To: "description"},
	{From: "is_enabled", To: "is_enabled"},
	{From: "is_hidden", To: "is_hidden"},
	{From: "label", To: "label"},
	{From: "scheme_id", To: "scheme_id"},
	{From: "terms", To: "terms"},
	{From: "vocabulary_type", To: "vocabulary_type"},
}

var organizationFields = []Field{
	{From: "access_levels.member_level", To: "access_levels.member_level", As: asAccessLevel},
	{From: "access_levels.public_level", To: "access_levels.public_level", As: asAccessLevel},
	{From: "description", To: "description"},
	{From: "email", To: "email"},
	{From: "external_references", To: "external_refs"},
	{From: "full_name", To: "full_name"},
	{From: "is_enabled", To: "is_enabled"},
	{From: "is_hidden", To: "is_hidden"},
	{From: "name", To: "name"},
	{From: "operational_settings.station_offline_threshold", To: "general_config.station_warning_threshold_minutes", As: asMinutes},
	{From: "slug", To: "slug", As: asSlug},
	{From: "sort_value", To: "sort_value"},
	{From: "url", To: "url"},
}

var siteFields = []Field{
	{From: "country_code", To: "country_code"},
	{From: "external_references", To: "external_refs"},
	{From: "full_name", To: "full_name"},
	{From: "geo", To: "geo", As: asPoint},
	{From: "is_enabled", To: "is_enabled"},
	{From: "name", To: "name"},
	{To: "place_type", Else: "site"},
	{From: "url", To: "url"},
}

var thingTypeFields = []Field{
	{From: "description", To: "description"},
	{From: "external_links", To: "external_links"},
	{From: "external_references", To: "external_refs"},
	{From: "is_enabled", To: "is_enabled"},
	{From: "model", To: "model"},
	{From: "name", To: "name"},
	{From: "oem_company_id", To: "oem_company_id"},
	{From: "reseller_company_id", To: "reseller_company_id"},
}

var stationFields = []Field{
	{From: "access_levels.member_level", To: "access_levels.member_level", As: asAccessLevel},
	{From: "access_levels.public_level", To: "access_levels.public_level", As: asAccessLevel},
	{From: "deployments", To: "place_id", As: asCurrentSite},
	{From: "description", To: "description"},
	{From: "external_links", To: "external_links"},
	{From: "external_references", To: "external_refs"},
	{From: "full_name", To: "full_name"},
	{From: "geo", To: "geo", As: asPoint},
	{From: "is_active", To: "is_active"},
	{From: "is_enabled", To: "is_enabled"},
	{From: "is_geo_protected", To: "is_geo_protected"},
	{From: "is_hidden", To: "is_hidden"},
	{From: "is_stationary", To: "is_stationary"},
	{From: "name", To: "name"},
	{From: "organization_id", To: "organization_id"},
	{From: "slug", To: "slug", As: asSlug},
	{From: "state", To: "state", Else: "ready"},
	{From: "station_offline_threshold", To: "general_config.station_warning_threshold_minutes", As: asMinutes},
	{From: "station_type", To: "station_type", Else: "weather"},
	{From: "thing_type_ids", To: "thing_type_ids"},
	{From: "time_zone", To: "time_zone", As: asZoneAbbreviation, Else: "UTC"},
	{From: "utc_offset", To: "utc_offset", As: asSeconds, Else: 0},
}

var datastreamFields = []Field{
	{From: "access_levels.member_level", To: "access_levels.member_level", As: asAccessLevel},
	{From: "access_levels.public_level", To: "access_levels.public_level", As: asAccessLevel},
	{From: "attributes", To: "attributes"},
	{From: "datapoints_config", To: "datapoints_config", As: asDatapointsConfig},
	{From: "derivation_description", To: "derivation_description"},
	{From: "derivation_method", To: "derivation_method"},
	{From: "derived_from_datastream_ids", To: "derived_from_datastream_ids"},
	{From: "description", To: "description"},
	{From: "external_references", To: "external_refs"},
	{From: "geo", To: "geo", As: asPoint},
	{From: "is_enabled", To: "is_enabled"},
	{From: "is_geo_protected", To: "is_geo_protected"},
	{From: "is_hidden", To: "is_hidden"},
	{From: "name", To: "name"},
	{From: "organization_id", To: "organization_id"},
	{From: "preferred_uom_ids", To: "preferred_uom_ids"},
	{From: "source", To: "source"},
	{From: "source_type", To: "source_type"},
	{From: "state", To: "state", Else: "ready"},
	{From: "station_id", To: "station_id"},
	{From: "terms", To: "terms.*", As: asTerms},
	{From: "thing_type_id", To: "thing_type_id"},
}
