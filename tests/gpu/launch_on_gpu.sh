#!/bin/sh
# launch_on_gpu.sh CUFIT: `cufit run` and `cufit preflight` on a machine with a GPU and a torch for
# CUDA 13 in its python3: the program has the right torch, how the GPUs were found, what it costs,
# and what --supervise says of a real out-of-memory.
set -e
cufit=$1
source=$(cd "$(dirname "$0")/../run" && pwd)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
export XDG_CACHE_HOME="$work/cache"
sh "$source/project.sh" "$work/p"
cd "$work/p"
rm -r .cufit/envs/cu130
ln -s "$(python3 -c 'import sys; print(sys.prefix)')" .cufit/envs/cu130
ask='import os, sys, torch; print(torch.__version__, torch.cuda.get_device_name(), sys.prefix == os.environ["VIRTUAL_ENV"], torch.zeros(1, device="cuda").item())'
loop='
import statistics, subprocess, sys, time
walls = []
for _ in range(int(sys.argv[1])):
    start = time.perf_counter()
    subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    walls.append(time.perf_counter() - start)
print(f"{statistics.median(walls) * 1000:.2f} ms (least {min(walls) * 1000:.2f})", *sys.argv[2:])
'
echo "== run"
"$cufit" run -- python -c "$ask"
ls "$XDG_CACHE_HOME/cufit/gpus" 2>/dev/null | sed 's/^/kept answer: /'
uuid=$(nvidia-smi --query-gpu=uuid --format=csv,noheader | head -1 || true)
for value in 0 "$uuid" 7 ""; do
  echo "== CUDA_VISIBLE_DEVICES=$value"
  CUDA_VISIBLE_DEVICES=$value "$cufit" run -- python -c 'print("started")' || echo "exit $?"
done
echo "== asked, once and again (a multi-process server may be there)"
CUDA_MPS_PIPE_DIRECTORY=/nowhere python3 -c "$loop" 1 "$cufit" run -q -- true
CUDA_MPS_PIPE_DIRECTORY=/nowhere python3 -c "$loop" 1 "$cufit" run -- true
ls "$XDG_CACHE_HOME/cufit/gpus" | sed 's/^/kept answer: /'
echo "== cost"
python3 -c "$loop" 200 true
python3 -c "$loop" 200 "$cufit" run -q -- true
CUDA_MPS_PIPE_DIRECTORY=/nowhere python3 -c "$loop" 200 "$cufit" run -q -- true
echo "== preflight"
"$cufit" preflight || echo "exit $?"
python3 -c "$loop" 10 "$cufit" preflight
echo "== env check: a lock of what is installed here, verified by its files and on the GPU"
python3 - "$work/real" <<'EOF'
# The lock that `cufit lock` would have written for the environment of this python3.
import hashlib, importlib.metadata, json, os, re, sys
import torch
folder = sys.argv[1]
name = "cu" + torch.version.cuda.replace(".", "")
text = 'lock-version = "1.0"\ncreated-by = "launch_on_gpu.sh"\n'
seen = set()
for one in importlib.metadata.distributions():
    project = re.sub(r"[-_.]+", "-", one.metadata["Name"]).lower()
    if project in seen:
        continue
    seen.add(project)
    text += ('\n[[packages]]\nname = "%s"\nversion = "%s"\nwheels = [{ url = "https://index.invalid/%s.whl", '
             'hashes = { sha256 = "%s" } }]\n' % (project, one.version, project, "0" * 64))
os.makedirs(folder + "/.cufit/envs")
with open(f"{folder}/pylock.{name}.toml", "w") as out:
    out.write(text)
digest = hashlib.sha256(text.encode()).hexdigest()
release = torch.__version__.split("+")[0]
cubins = [arch[3:] for arch in torch.cuda.get_arch_list() if arch.startswith("sm_")]
python = "%d.%d" % sys.version_info[:2]
with open(folder + "/cufit.lock", "w") as out:
    out.write('schema = "cufit.lock/1"\ncreated-by = "launch_on_gpu.sh"\nrequirements = ["torch"]\ntargets = ["HERE"]\n'
              f'asked = ["torch"]\n\n[[class]]\nname = "{name}"\nfile = "pylock.{name}.toml"\nsha256 = "{digest}"\n'
              f'torch = "{release}"\ntag = "{name}"\ncuda = "{torch.version.cuda}"\npython = "{python}"\n'
              f'platform = "linux_x86_64"\ncubins = {json.dumps(cubins)}\nserves = ["HERE"]\nwhy = "installed"\n')
with open(f"{folder}/.cufit/envs/{name}.json", "w") as out:
    json.dump({"schema": "cufit.env/1", "class": name, "pylock": f"pylock.{name}.toml", "pylock_sha256": digest,
               "created": "2026-11-21T10:00:00Z", "installer": "uv 0.9.9"}, out)
os.symlink(sys.prefix, f"{folder}/.cufit/envs/{name}")
EOF
(cd "$work/real" && "$cufit" env list && { "$cufit" env check --json || echo "exit $?"; } &&
  "$cufit" run -- python -c "$ask" && "$cufit" preflight)
echo "== resolve for this machine"
"$cufit" resolve | head -12
echo "== supervise"
"$cufit" run --supervise --report "$work/r.txt" -- python -c 'import torch, time
kept = []
while True:
    kept.append(torch.empty(8 << 30, dtype=torch.uint8, device="cuda"))
    time.sleep(0.2)' || echo "exit $?"
sed -n '1,12p' "$work/r.txt"
