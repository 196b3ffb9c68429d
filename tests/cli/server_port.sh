# Sourced after a server was started that writes its port to $TMP/port: sets $port.
n=0
while [ $n -lt 200 ] && [ ! -s "$TMP/port" ]; do
  sleep 0.05
  n=$((n + 1))
done
port=$(cat "$TMP/port")
