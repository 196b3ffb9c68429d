# Sourced by cases. The stand-in driver: machine LINE... describes the machine in $TMP/machine, a card a time by gpu.
B="${CUFIT%/cufit}"
export LD_LIBRARY_PATH="$B/standin" CUFIT_STANDIN="$TMP/machine"
machine() { printf '%s\n' 'driver = 580.95.05' 'cuda = 13000' 'live = 1' "$@" >"$CUFIT_STANDIN"; }

# gpu NUMBER [LINE...]: an H200 and these lines of it.
gpu() {
  printf '%s\n' '[gpu]' 'name = NVIDIA H200' "uuid = GPU-00000000-1111-2222-3333-44444444444$1" "pci = 0000:6$1:00.0" \
    'memory = 150754820096' 'temperature = 61' 'slowdown_temperature = 95' 'power_mw = 412000' 'power_limit_mw = 700000' \
    'utilization = 97' 'utilization.memory = 41' 'clock.sm = 1755' 'clock_max.sm = 1980' 'pcie_gen = 5' 'pcie_width = 16' \
    'corrected.volatile = 0' 'uncorrected.volatile = 0' >>"$CUFIT_STANDIN"
  shift
  printf '%s\n' "$@" >>"$CUFIT_STANDIN"
}
process() { printf '%s\n' '[process]' "$@" >>"$CUFIT_STANDIN"; }

# plain: without what differs from run to run.
plain() { sed -E 's/20[0-9-]{8} [0-9:]{8}/DATE TIME/; s/ +'"$$"'  [^ ]+ +/  PID  USER  /; s/ +[0-9]+ (s|min|h)  /  AGE  /'; }
