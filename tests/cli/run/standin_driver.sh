# Sourced after in_project.sh. A stand-in of the driver's libraries, which reads $TMP/standin.
export CUFIT_STANDIN="$TMP/standin" LD_LIBRARY_PATH="$B/standin"
export XDG_CACHE_HOME="$TMP/cache"

# driver [LINE...]: the driver without a GPU, and more lines.
driver() {
  printf 'driver = 580.95.05\n' >"$CUFIT_STANDIN"
  [ $# -eq 0 ] || printf '%s\n' "$@" >>"$CUFIT_STANDIN"
}

# one_gpu NAME NUMBER BUS CAPABILITY: the driver with this GPU.
one_gpu() {
  driver 'cuda = 13000' '[gpu]' "name = $1" "uuid = GPU-0000000$2-1111-2222-3333-444444444444" \
    "pci = 0000:0$3:00.0" "cc = $4"
}
pascal() { one_gpu "NVIDIA GeForce GTX 1080" 0 1 6.1; }
blackwell() { one_gpu "NVIDIA GeForce RTX 5090" 1 2 12.0; }
