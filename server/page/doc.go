// Package page is the status page: what needs a person, all jobs with their latest runs, and
// what is behind them, with the actions of the Job API.
//
// The page knows what the Job API tells, and does nothing but call it, with the context of
// the request. It is HTML that works without scripts. A script fills in the outcomes of runs,
// filters without a request, asks before it does harm, and follows changes by server-sent
// events. Browsers load everything from the page itself.
package page
