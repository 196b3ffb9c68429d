#!/bin/sh
# Stands for nvidia-cuda-mps-control: with -d a daemon that listens, else a command on standard input. What it was told goes to
# $MPS_NOTES; MPS_FAIL lets it refuse.
pipes="$CUDA_MPS_PIPE_DIRECTORY"
if [ "$1" = -d ]; then
  [ -z "$MPS_FAIL" ] || { echo "no device for MPS" >&2; exit 3; }
  echo "started, visible $CUDA_VISIBLE_DEVICES" >>"$MPS_NOTES"
  exec setsid -f python3 - "$pipes" >/dev/null 2>&1 <<'END'
import os, socket, sys
pipes = sys.argv[1]
listening = socket.socket(socket.AF_UNIX)
listening.bind(pipes + "/control")
listening.listen(8)
listening.settimeout(0.05)
with open(pipes + "/nvidia-cuda-mps-control.pid", "w") as file:
    file.write(str(os.getpid()))
for _ in range(1200):
    if os.path.exists(pipes + "/quit"):
        break
    try:
        listening.accept()[0].close()
    except OSError:
        pass
os.unlink(pipes + "/nvidia-cuda-mps-control.pid")
END
fi
read -r line
echo "told $line" >>"$MPS_NOTES"
: >"$pipes/quit"
while [ -e "$pipes/nvidia-cuda-mps-control.pid" ]; do sleep 0.05; done
