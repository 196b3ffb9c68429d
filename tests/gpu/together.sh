#!/bin/sh
# SPDX-License-Identifier: Apache-2.0
# `cufit doctor --deep` on two or more real GPUs: needs the program and a Python with torch, nothing else of this tree.
#   sh tests/gpu/together.sh dist/cufit OUT
# Prints the section "GPUs together" of three runs and what each left behind; OUT gets the recordings. NCCL_NVLS_ENABLE
# and the like are passed on as they are set.
set -u
cufit=$1 out=$2
before=$(ls /dev/shm)
show() {
  "$cufit" doctor --from "$1" -v | sed -n '/^GPUs together/,/^$/p'
  "$cufit" doctor --from "$1" --json | grep -E '"id": "(gpu_exchange|nccl_)' || echo 'no finding of GPUs together'
  [ "$(ls /dev/shm)" = "$before" ] && echo '/dev/shm as before' || { echo '/dev/shm differs:'; ls -l /dev/shm; }
  ps -eo pid,args | grep -F cufit_together | grep -v grep && echo 'processes are left'
}
echo '== as it is'
time "$cufit" doctor --deep --record "$out/together.json" >"$out/together.txt" || echo "exit $?"
show "$out/together.json"
echo '== without peer access: a finding names the variable if it is slow'
NCCL_P2P_DISABLE=1 "$cufit" doctor --deep --record "$out/without-p2p.json" >"$out/without-p2p.txt" || echo "exit $?"
show "$out/without-p2p.json"
echo '== no interface of that name: NCCL fails, and a finding says which variable'
NCCL_SOCKET_IFNAME=eth77 "$cufit" doctor --deep --record "$out/no-interface.json" >"$out/no-interface.txt" || echo "exit $?"
show "$out/no-interface.json"
echo '== interrupted after 25 s'
"$cufit" doctor --deep >/dev/null 2>&1 &
sleep 25
kill $!
sleep 5
show "$out/together.json" >/dev/null
ps -eo pid,args | grep -F cufit_together | grep -v grep && echo 'processes are left' || echo 'nothing is left'
