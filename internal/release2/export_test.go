package release2

// VersionQuery is the query of a patch.
var VersionQuery = versionQuery
