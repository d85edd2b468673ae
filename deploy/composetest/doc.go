// Package composetest runs docker-compose.yml, and what is promised of it. It has a Docker
// daemon of its own. Images that cannot be pulled have stand-ins: the same servers, built from
// their Go modules and Debian's packages, under the same names.
package composetest
