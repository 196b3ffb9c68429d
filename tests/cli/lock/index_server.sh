# Sourced by cases. A package index on 127.0.0.1:$port, which logs what it was asked into $TMP/log.
# `kill $server` ends it.
python3 tests/support/index_server.py "$TMP/log" >"$TMP/port" &
server=$!
n=0
while [ $n -lt 200 ] && [ ! -s "$TMP/port" ]; do
  sleep 0.05
  n=$((n + 1))
done
port=$(cat "$TMP/port")
export HOME="$TMP" # of the cache of what indexes said
