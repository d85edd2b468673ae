// Package ldmptest is a server that speaks LoggerNet's Logger Data Monitoring
// Protocol, with plausible records of made-up stations: for tests, and for
// development without loggers.
//
// Records are a pure function of seed, station, table and time, so that two
// servers of the same options tell the same story, and a test can compare what it
// stored with [Server.Readings] value by value. A ledger counts what was sent and
// what was acknowledged.
//
// What the vendor leaves open is settled here as follows. Tables of a connection
// take turns. A start option counts the record at its very time in. Of a station
// or table that there is not, nothing is said. A specification that cannot be
// read ends the connection, and so does an acknowledgement of nothing. Records
// are sent with a prolog, without a root element around them.
package ldmptest
