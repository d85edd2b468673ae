// Package top shows the overview of the Job API in a terminal, and acts on what it shows. It
// calls the API alone, so it looks the same in process and with a server. Without a terminal
// it writes one snapshot.
package top
