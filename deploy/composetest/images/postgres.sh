#!/bin/sh
# What the image of PostgreSQL does at its start: as root it gives its folder away, then it
# makes a user and a database, by a server that listens on no address.
set -eu
export PATH="/usr/lib/postgresql/15/bin:$PATH" PGDATA=/var/lib/postgresql/data
if [ "$(id -u)" = 0 ]; then
  chown -R postgres "$PGDATA" /run/postgresql
  chmod 700 "$PGDATA"
  exec setpriv --reuid=postgres --regid=postgres --init-groups "$0" "$@"
fi
if [ ! -s "$PGDATA/PG_VERSION" ]; then
  printf %s "$POSTGRES_PASSWORD" > /tmp/password
  initdb --username="$POSTGRES_USER" --pwfile=/tmp/password --auth=trust > /dev/null
  rm /tmp/password
  echo 'host all all all scram-sha-256' >> "$PGDATA/pg_hba.conf"
  pg_ctl --options="-c listen_addresses=''" --wait start > /dev/null
  createdb --username="$POSTGRES_USER" "$POSTGRES_USER"
  pg_ctl --wait stop > /dev/null
fi
exec postgres -c listen_addresses='*'
