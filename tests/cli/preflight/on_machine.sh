# Sourced by cases. A machine in $M that $CUFIT takes for this one, with virtual environments /e126,
# /e130 and /ecpu, and a stand-in of the driver's libraries, which reads $TMP/standin. $R is the
# source tree, $TMP becomes the working folder. Errors join the output in their order.
R="$PWD" P="$TMP/p" M="$TMP/m" B="${CUFIT%/cufit}"
CUFIT="$B/tests/on_machine/cufit"
export CUFIT_TEST_MACHINE="$M" CUFIT_STANDIN="$TMP/standin"
export LD_LIBRARY_PATH="$B/standin"
cd "$TMP"
exec 2>&1

# environments FOLDER CU126 CU130 CPU: three virtual environments there, of these names.
environments() {
  sh "$R/tests/run/env.sh" "$1/$2" 2.14.1+cu126 12.6
  sh "$R/tests/run/env.sh" "$1/$3" 2.14.1+cu130 13.0
  sh "$R/tests/run/env.sh" "$1/$4" 2.14.1+cpu None
}

# machine DRIVER [PCI_ID...]: makes the machine anew.
machine() {
  rm -rf "$M"
  sh "$R/tests/run/machine.sh" "$M" "$@"
  environments "$M" e126 e130 ecpu
}

# project: a project of four classes in $P, which becomes the working folder, on the machine too.
project() {
  sh "$R/tests/run/project.sh" "$P"
  cd "$P"
  mkdir -p "$M$TMP"
  cp -r "$P" "$M$P"
  environments "$M$P/.cufit/envs" cu126 cu130 cpu
}

# standin DRIVER CUDA: the driver's answer, two RTX 4090.
standin() {
  printf 'driver = %s\ncuda = %s\n' "$1" "$2" >"$CUFIT_STANDIN"
  for i in 0 1; do
    cat >>"$CUFIT_STANDIN" <<GPU
[gpu]
name = NVIDIA GeForce RTX 4090
uuid = GPU-0000000$i-1111-2222-3333-444444444444
pci = 0000:0$((i + 1)):00.0
cc = 8.9
memory = 25757220864
GPU
  done
}

# tell COMMAND...: what it says, without the name of the scratch folder, and its exit code.
tell() {
  "$@" >"$TMP/out" 2>&1
  code=$?
  sed "s|$TMP|TMP|g" "$TMP/out"
  echo "exit $code"
}
