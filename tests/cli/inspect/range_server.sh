# Sourced by cases. Files of $TMP/files by ranges on 127.0.0.1:$port; what was asked is in $TMP/log.
# `kill $server` ends it.
mkdir -p "$TMP/files"
python3 tests/support/range_server.py "$TMP/files" "$TMP/log" >"$TMP/port" 2>/dev/null &
server=$!
. tests/cli/server_port.sh
masked() { sed "s|$TMP|TMP|g; s/:$port/:PORT/g"; }
