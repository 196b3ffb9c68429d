# Sourced by cases of `--vram`. A described card in $TMP/machine (card NUMBER BYTES adds one), a program $A that asks it for
# memory, and everything that cufit writes below $TMP. $R is the source tree. Errors join the output in their order.
B="${CUFIT%/cufit}" R="$PWD"
A="$B/guard_card/guard_actor"
export HOME="$TMP/home" CUFIT_RUN_DIR="$TMP/run/cufit" LD_LIBRARY_PATH="$B/guard_card" CUFIT_STANDIN="$TMP/machine" CUFIT_CARD="$TMP/card"
mkdir "$TMP/home" "$TMP/run"
printf '%s\n' 'driver = 580.95.05' 'cuda = 13000' >"$TMP/machine"
card() {
  printf '%s\n' '[gpu]' "name = Card$1" "uuid = GPU-00000000-1111-2222-3333-44444444444$1" "pci = 0000:6$1:00.0" \
    "memory = $2" 'context = 314572800' >>"$TMP/machine"
}
exec 2>&1

# tell COMMAND...: what it says, without the name of the scratch folder, and its exit code.
tell() {
  "$@" >"$TMP/said" 2>&1
  code=$?
  sed "s|$TMP|TMP|g" "$TMP/said"
  echo "exit $code"
}
# What is left of launches: kinds of files, by name.
left() {
  find "$TMP/run" -mindepth 2 ! -name lock ! -path '*/guard*' | sed "s|$TMP/run/cufit/||; s|[0-9][0-9]*-[0-9][0-9]*-[0-9][0-9]*|LAUNCH|; s|/[0-9-]*\\.ring|/PROCESS.ring|" | sort
}

# begun: waits for a program that ran $begin, whose number is $program then.
begin="echo \$\$ >'$TMP/begun'"
begun() {
  until [ -s "$TMP/begun" ]; do sleep 0.02; done
  program=$(cat "$TMP/begun")
  rm "$TMP/begun"
}
