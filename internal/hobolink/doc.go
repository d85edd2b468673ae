// Package hobolink reads measurements of HOBO loggers from the data API of
// LI-COR Cloud, version 1: GET <base>/v1/data?loggers=…&start_date_time=…&end_date_time=….
//
// Limits of the vendor: 60 requests in 60 seconds per token, which all processes
// that share a [Ledger] keep to, and without one all clients of a process; at most
// some 100,000 observations in an answer, without paging, so that a caller has to
// ask for less time when [Answer.Truncated] is set; times in whole seconds, in UTC.
package hobolink
