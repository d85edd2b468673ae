#!/bin/sh
# As in the image of NATS, flags alone are those of the server.
set -eu
case "${1:-}" in -*) set -- nats-server "$@" ;; esac
exec "$@"
