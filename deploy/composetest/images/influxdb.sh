#!/bin/sh
# As the image of InfluxDB, makes the database at the first start.
set -eu
data=/var/lib/influxdb
export INFLUXDB_META_DIR=$data/meta INFLUXDB_DATA_DIR=$data/data INFLUXDB_DATA_WAL_DIR=$data/wal
if [ ! -d $data/meta ] && [ -n "${INFLUXDB_DB:-}" ]; then
  influxd & first=$!
  until influx -execute "CREATE DATABASE $INFLUXDB_DB" 2> /dev/null; do sleep 0.1; done
  kill -TERM "$first"
  wait "$first" || true
fi
exec influxd
