# Sourced by cases. A package index on 127.0.0.1:$port, which logs what it was asked into $TMP/log.
# `kill $server` ends it.
python3 tests/support/index_server.py "$TMP/log" >"$TMP/port" &
server=$!
. tests/cli/server_port.sh
export HOME="$TMP" # of the cache of what indexes said
