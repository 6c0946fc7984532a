#!/bin/sh
# The suite compares with PostgreSQL 15. Its server binaries are looked for where Debian puts them; as root on a
# machine with apt-get they are installed. Anywhere else the tests themselves say what is missing.
set -eu
for bin in /usr/lib/postgresql/15/bin ${EDDYLINE_PG_BIN:-}; do
    [ -x "$bin/initdb" ] && exit 0
done
command -v apt-get >/dev/null 2>&1 || exit 0
[ "$(id -u)" = 0 ] || exit 0
echo "installing postgresql-15"
apt-get update -qq
# The package would start a cluster of its own; the tests start theirs in temporary directories.
mkdir -p /etc/postgresql-common
grep -qs '^create_main_cluster' /etc/postgresql-common/createcluster.conf \
    || echo 'create_main_cluster = false' >> /etc/postgresql-common/createcluster.conf
DEBIAN_FRONTEND=noninteractive apt-get install -y -qq --no-install-recommends postgresql-15 >/dev/null
