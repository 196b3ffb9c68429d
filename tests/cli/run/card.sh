# Sourced by cases. A described card of 4 GiB, whose memory all processes share (tests/guard/driver/card.h). $A is a program
# that uses it. Errors join the output in their order.
B="${CUFIT%/cufit}" A="${CUFIT%/cufit}/guard_card/guard_actor"
export HOME="$TMP" CUFIT_RUN_DIR="$TMP/cufit" LD_LIBRARY_PATH="$B/guard_card" CUFIT_STANDIN="$TMP/machine" CUFIT_CARD="$TMP/card"
exec 2>&1

# machine [LINE...]: the machine without a card, and these lines.
machine() { printf '%s\n' 'driver = 580.95.05' 'cuda = 13000' "$@" >"$CUFIT_STANDIN"; }

# card NUMBER [LINE...]: one more card, and these lines of it.
card() {
  printf '%s\n' '[gpu]' "name = Card $1" "uuid = GPU-00000000-1111-2222-3333-44444444444$1" "pci = 0000:6$1:00.0" \
    'memory = 4294967296' 'context = 314572800' >>"$CUFIT_STANDIN"
  shift
  printf '%s\n' "$@" >>"$CUFIT_STANDIN"
}

# appears TEXT FILE: waits until it stands there, 30 s at most.
appears() {
  for i in $(seq 300); do
    grep -qs "$1" "$2" && return 0
    sleep 0.1
  done
  echo "no '$1' in $2"
  return 1
}

# tell FILE: what was said there, without what differs from run to run.
tell() { sed -e 's/pid [0-9]*/pid N/g' -e 's/after [0-9:]* of/after T of/' -e "s|$TMP|TMP|g" "$1"; }
