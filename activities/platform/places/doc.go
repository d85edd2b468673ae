// Package places says where things of organizations are: the buckets of their uploads,
// variants and archive, and the InfluxDB servers of all locations. It is a setting of the
// backend worker, which makes variants, discovers tables and removes what a deleted
// organization has.
package places
