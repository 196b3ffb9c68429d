# Sourced by cases. A project of four classes in $P, which becomes the working folder, and a machine
# in $M that $CUFIT takes for this one. $R is the source tree. Errors join the output in their order.
R="$PWD" P="$TMP/p" M="$TMP/m" B="${CUFIT%/cufit}"
CUFIT="$B/tests/on_machine/cufit"
export CUFIT_TEST_MACHINE="$M"
sh tests/run/project.sh "$P"
cd "$P"
exec 2>&1

# machine DRIVER [PCI_ID...]: makes the machine anew.
machine() {
  rm -rf "$M"
  sh "$R/tests/run/machine.sh" "$M" "$@"
}

# tell COMMAND...: what it says, without the name of the scratch folder.
tell() { "$@" 2>&1 | sed "s|$TMP|TMP|g"; }
