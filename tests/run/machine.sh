#!/bin/sh
# machine.sh DIR DRIVER [PCI_ID...]: a folder that stands for a machine with this driver and these
# GPUs, as far as `cufit run` looks (CUFIT_TEST_MACHINE). DRIVER "none": no driver at all. After
# "PCI_ID" a "-" means that the node of this GPU may not be opened.
set -e
dir=$1 driver=$2
shift 2
lib=$dir/usr/lib/x86_64-linux-gnu
mkdir -p "$lib" "$dir/lib64" "$dir/dev" "$dir/proc/self" "$dir/proc/sys/kernel/random" "$dir/sys/bus/pci/devices"
elf() { printf '\177ELF\002\001\001\000\000\000\000\000\000\000\000\000\003\000\076\000'; head -c 44 /dev/zero; }
elf >"$dir/lib64/ld-linux-x86-64.so.2"
elf >"$dir/proc/self/exe"
{ elf; echo "GNU C Library (Debian GLIBC 2.36-9+deb12u8) stable release version 2.36."; } >"$lib/libc.so.6"
echo "Linux version 6.1.0-26-amd64 (debian-kernel@lists.debian.org)" >"$dir/proc/version"
echo 4a31d51d-7b06-491f-8450-a12738990dc6 >"$dir/proc/sys/kernel/random/boot_id"
[ "$driver" = none ] && exit 0
mkdir -p "$dir/sys/module/nvidia" "$dir/proc/driver/nvidia/gpus"
echo "$driver" >"$dir/sys/module/nvidia/version"
elf >"$lib/libcuda.so.$driver"
ln -s "libcuda.so.$driver" "$lib/libcuda.so.1"
touch "$dir/dev/nvidiactl"
model() { case $1 in 1b80) echo NVIDIA GeForce GTX 1080;; *) echo "NVIDIA board $1";; esac; }
n=0
for id in "$@"; do
  address=0000:0$((n + 1)):00.0
  mkdir -p "$dir/sys/bus/pci/devices/$address" "$dir/proc/driver/nvidia/gpus/$address"
  echo 0x10de >"$dir/sys/bus/pci/devices/$address/vendor"
  echo "0x${id%-}" >"$dir/sys/bus/pci/devices/$address/device"
  echo 0x030000 >"$dir/sys/bus/pci/devices/$address/class"
  printf 'Model: \t\t %s\nGPU UUID: \t GPU-0000000%s-1111-2222-3333-444444444444\nDevice Minor: \t %s\n' "$(model "${id%-}")" $n $n \
    >"$dir/proc/driver/nvidia/gpus/$address/information"
  [ "$id" = "${id%-}" ] && touch "$dir/dev/nvidia$n"
  n=$((n + 1))
done
exit 0
