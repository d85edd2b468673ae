#!/bin/sh
# As the image of InfluxDB, makes the database at the first start.
set -eu
if [ ! -d /var/lib/influxdb/meta ] && [ -n "${INFLUXDB_DB:-}" ]; then
  influxd & first=$!
  until influx -execute "CREATE DATABASE $INFLUXDB_DB" 2> /dev/null; do sleep 0.1; done
  kill -TERM "$first"
  wait "$first" || true
fi
exec influxd
