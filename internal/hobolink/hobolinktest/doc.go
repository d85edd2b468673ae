// Package hobolinktest is a server that speaks the data API of LI-COR Cloud
// (HOBOlink), version 1, with plausible weather: for tests, and for development
// without a vendor account.
//
// One endpoint is served, GET /v1/data, with the parameters loggers,
// start_date_time and end_date_time (UTC, "yyyy-MM-dd HH:mm:ss", both ends
// included). Answers, error codes, rate limit headers and the cap on points
// follow the vendor's published description; what that leaves open is settled
// here as follows: which VAL code means what, an unknown logger is a 400, a
// missing token is a 401 and a wrong one a 403.
//
// Measurements are a pure function of seed, logger, series and time, so that
// two handlers of the same options tell the same story, and a test can compare
// what it stored with [Handler.Observations] value by value.
package hobolinktest
