#!/bin/sh
# env_on_gpu.sh CUFIT UV [quick]: `cufit lock`, `env create`, `env check`, `run` and `env remove` with the real uv and the
# torch that is installed in python3, on a machine without a network: what is installed is packed into wheels again and
# served on loopback as the default index (wheelhouse.py). Creates that are killed, stopped or get a changed file come
# first. A second lock has two classes: the same torch, and a stand-in without code for where there is no GPU.
# "quick" leaves out torch.compile, what things cost, and pip.
# CUFIT is build/cufit: on machines that are made up, the program of build/tests/on_machine takes its place.
# Without a GPU it runs as well, on a described H100 (tests/run/machine.sh). Needs three times the room of torch in TMPDIR.
set -e
cufit=$1 quick=${3:-} on_machine=${1%/cufit}/tests/on_machine/cufit
export CUFIT_UV=$2
here=$(cd "$(dirname "$0")" && pwd)
work=$(mktemp -d)
server=
trap '[ -z "$server" ] || kill $server; rm -rf "$work"' EXIT
export XDG_CACHE_HOME="$work/cache" UV_CACHE_DIR="$work/uv-cache" no_proxy=127.0.0.1 NO_PROXY=127.0.0.1
unset VIRTUAL_ENV PYTHONPATH PIP_FIND_LINKS CUDA_VISIBLE_DEVICES
now() { date +%s%N; }
timed() { # timed LABEL COMMAND...: its exit code and wall time on a line
  label=$1 start=$(now) code=0
  shift
  "$@" || code=$?
  echo "-- $label: exit $code, $((($(now) - start) / 1000000)) ms"
}
median() { python3 "$work/median.py" "$@"; }
cat >"$work/median.py" <<'EOF_PY'
import statistics, subprocess, sys, time
walls = []
for _ in range(int(sys.argv[1])):
    start = time.perf_counter()
    subprocess.run(sys.argv[2:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    walls.append(time.perf_counter() - start)
print(f"{statistics.median(walls) * 1000:.1f} ms (least {min(walls) * 1000:.1f}, of {len(walls)})", *sys.argv[2:])
EOF_PY
cat >"$work/ask.py" <<'EOF_PY'
# What the program that was started says of its torch, its GPU, and where its libraries come from.
import os, sys, torch
home = os.environ["VIRTUAL_ENV"]
print("torch", torch.__version__, "numpy", __import__("numpy").__version__, "class", os.environ["CUFIT_CLASS"])
print("of the environment:", sys.prefix == home and torch.__file__.startswith(home + "/"), "| CUDA_VISIBLE_DEVICES", os.environ.get("CUDA_VISIBLE_DEVICES"))
print("GPUs:", [torch.cuda.get_device_name(i) for i in range(torch.cuda.device_count())], "cuDNN", torch.backends.cudnn.version())
where = "cuda" if torch.cuda.is_available() else "cpu"
a, b = torch.randn(2048, 2048, dtype=torch.float64), torch.randn(2048, 2048, dtype=torch.float64)
for name, kind in (("float32", torch.float32), ("bfloat16", torch.bfloat16)):
    got = (a.to(where, kind) @ b.to(where, kind)).double().cpu()
    print(f"matrix product on {where}, {name}: off by {((got - a @ b).norm() / (a @ b).norm()).item():.1e}")
images, kernel = torch.randn(8, 16, 64, 64), torch.randn(32, 16, 3, 3)
got, wanted = (torch.nn.functional.conv2d(images.to(to), kernel.to(to)).double().cpu() for to in (where, "cpu"))
print(f"convolution on {where}: off by {((got - wanted).norm() / wanted.norm()).item():.1e}")
if where == "cuda" and "compile" in sys.argv:
    x = torch.randn(1 << 20, device=where)
    try:
        got = torch.compile(lambda x: (x * 2 + 1).relu().sum())(x)
        print("torch.compile:", torch.allclose(got, (x * 2 + 1).relu().sum(), rtol=1e-4))
    except Exception as error:  # no compiler of C, no Python.h: the machine's matter
        print("torch.compile:", str(error).splitlines()[0])
mapped = {line.split()[-1] for line in open("/proc/self/maps") if ".so" in line}
cuda = {path for path in mapped if any(word in os.path.basename(path) for word in ("cu", "nv", "torch", "triton", "c10"))}
print(len([path for path in cuda if path.startswith(home + "/")]), "CUDA and torch libraries of the environment; from elsewhere:",
      sorted(path for path in cuda if not path.startswith(home + "/")))
EOF_PY

echo "== machine"
python3 -c 'import sys, torch; print("python", sys.version.split()[0], sys.prefix, "torch", torch.__version__)'
"$CUFIT_UV" --version
df -h "$work" | tail -1
target=HERE
gpu=$(nvidia-smi --query-gpu=name,driver_version --format=csv,noheader 2>/dev/null || true)
echo "GPU: ${gpu:-none}"
if [ -z "$gpu" ]; then
  target="H100,580"
  sh "$here/../run/machine.sh" "$work/h100" 580.159.04 2330
  export CUFIT_TEST_MACHINE="$work/h100"
  cufit=$on_machine
fi

echo "== wheels of what is installed"
shelf=$work/shelf
timed pack python3 "$here/wheelhouse.py" pack "$shelf/simple" torch numpy
torch=$(basename "$shelf"/simple/torch-*.whl)
release=$(echo "$torch" | cut -d- -f2 | cut -d+ -f1)
tag=$(python3 -c 'import torch; print("cu" + torch.version.cuda.replace(".", ""))')
# PyTorch's own index names the variant: the same files under that name, beside the stand-in.
timed rename python3 "$here/wheelhouse.py" rename "$shelf/own" "$shelf/simple/$torch" "$release+$tag"
python3 "$here/wheelhouse.py" stand-in "$shelf/own" "$release+cpu"
du -sh "$shelf"
touch "$work/requests"
python3 "$here/wheelhouse.py" serve "$shelf" "$work/requests" >"$work/port" &
server=$!
while [ ! -s "$work/port" ]; do sleep 0.2; done
index=http://127.0.0.1:$(cat "$work/port")
export UV_DEFAULT_INDEX=$index/simple

echo "== lock"
mkdir "$work/p"
cd "$work/p"
"$cufit" resolve --for "$target" | head -6
timed lock "$cufit" lock torch numpy --for "$target" --default-index-only
grep -E '^(name|torch|tag|python|serves|why|download)' cufit.lock
timed "lock --check" "$cufit" lock --check
"$cufit" env list
timed "run before there is an environment" "$cufit" run -- python -c 'print("started")'

echo "== create, killed in the middle of a download, and what it leaves"
held() { # starts a create and returns when torch's wheel is half here
  touch "$shelf/hold"
  : >"$work/requests"
  "$cufit" env create >"$work/created" 2>&1 &
  creating=$!
  while ! grep -q "GET /simple/$torch" "$work/requests"; do sleep 0.2; done
  sleep 2
}
ended() {
  code=0
  wait $creating || code=$?
  echo "exit $code"
  sed "s|$work|WORK|g" "$work/created"
  sleep 1
  pgrep -f "$work/p/.cufit" >/dev/null && echo "an installer is still there" || echo "no installer is left"
  rm "$shelf/hold"
  ls -A .cufit/envs
  "$cufit" env list
}
held
kill -KILL $creating
ended
echo "== create, asked to end (SIGTERM)"
held
kill -TERM $creating
ended
echo "== create with a file that was changed on its way"
basename "$shelf"/simple/nvidia_cudnn*.whl >"$shelf/spoil"
timed "create" "$cufit" env create 2>&1 | sed "s|$work|WORK|g"
rm "$shelf/spoil"
ls -A .cufit/envs
echo "== create"
du -sh "$UV_CACHE_DIR"
timed create "$cufit" env create
timed "create again" "$cufit" env create
timed "create --force, from the cache" "$cufit" env create --force --offline
timed list "$cufit" env list
cat .cufit/envs/*.json; echo
class=$("$cufit" env list --json | python3 -c 'import json, sys; print(json.load(sys.stdin)["environments"][0]["class"])')
env=$work/p/.cufit/envs/$class
grep -c . "$env"/lib/python3*/site-packages/torch-*.dist-info/RECORD

echo "== check"
timed check "$cufit" env check
timed doctor "$cufit" doctor --env "$env" --color never
"$cufit" doctor --env "$env" --json | python3 -c 'import json, sys
facts = json.load(sys.stdin)["facts"]
for device in facts["cuda"].get("devices") or []:
    print({key: device.get(key, {}).get("value", device.get(key)) for key in ("name", "compute_check")})'
[ -z "$gpu" ] || timed preflight "$cufit" preflight
if [ -n "$gpu" ]; then "$cufit" doctor --env "$env" --deep --color never | head -30; fi

echo "== run"
[ -n "$quick" ] || timed "first run" "$cufit" run -- python -W ignore "$work/ask.py" compile
timed run "$cufit" run -- python -W ignore "$work/ask.py"
uuid=$(nvidia-smi --query-gpu=uuid --format=csv,noheader 2>/dev/null | head -1 || true)
for value in 0 $uuid 7 ""; do
  echo "-- CUDA_VISIBLE_DEVICES=$value"
  CUDA_VISIBLE_DEVICES=$value "$cufit" run -- python -W ignore -c 'import torch; print("started", torch.cuda.device_count())' || echo "exit $?"
done
CUDA_VISIBLE_DEVICES="" "$cufit" run --env "$class" -- python -W ignore -c 'import torch; print("asked for", torch.cuda.is_available())'
echo "-- on a described machine with a GTX 1080"
sh "$here/../run/machine.sh" "$work/gtx" 580.159.04 1b80
CUFIT_TEST_MACHINE=$work/gtx "$on_machine" run -- python -c 'print("started")' || echo "exit $?"
echo "-- torchrun of the environment"
"$cufit" run -q -- torchrun --standalone --nproc-per-node 1 "$work/ask.py" 2>&1 | head -4
if [ -z "$quick" ]; then
  echo "-- what it costs"
  median 100 true
  median 100 "$cufit" run -q -- true
  median 5 "$cufit" run -q -- python -c "import torch"
  median 5 "$env/bin/python" -c "import torch"
  median 5 "$cufit" env list
  median 5 "$cufit" env check
fi

echo "== an environment that somebody changed"
"$CUFIT_UV" pip uninstall -q --python "$env/bin/python" numpy
timed check "$cufit" env check
timed "create again" "$cufit" env create
timed "create --force" "$cufit" env create --force --offline
timed check "$cufit" env check
echo "== create --force, killed: what was there stays"
"$cufit" env create --force --offline &
creating=$!
while ! ls -d .cufit/envs/."$class".partial-*/lib/python3*/site-packages/torch >/dev/null 2>&1; do :; done
kill -KILL $creating
wait $creating || echo "exit $?"
sleep 1
ls -A .cufit/envs
"$cufit" run -q -- python -c 'import torch; print("started with torch", torch.__version__)'
timed "create again" "$cufit" env create
ls -A .cufit/envs
echo "== a file that was cut off in the cache of uv, and so in the environment where it is linked to it"
stat -f -c "filesystem: %T" "$work"
echo "UV_LINK_MODE: ${UV_LINK_MODE:-not set}"
stat -c "names of the file: %h" "$env"/lib/python3*/site-packages/torch/lib/libtorch_cuda.so
find "$UV_CACHE_DIR" -name libtorch_cuda.so -exec truncate -s 300M {} +
timed check "$cufit" env check
timed "create --force" "$cufit" env create --force
"$CUFIT_UV" cache clean -q torch
timed "create --force, torch fetched anew" "$cufit" env create --force
timed check "$cufit" env check

echo "== a lock of two classes, as of PyTorch's own index"
mkdir "$work/two"
cd "$work/two"
timed lock "$cufit" lock "torch==$release" numpy --for "$target" --for cpu --index "$index/own"
timed create "$cufit" env create
"$cufit" env list
timed check "$cufit" env check
timed run "$cufit" run -- python -W ignore "$work/ask.py"
CUDA_VISIBLE_DEVICES="" "$cufit" run -- python -W ignore -c 'import torch; print("started with torch", torch.__version__, torch.cuda)' || echo "exit $?"
timed remove "$cufit" env remove cpu
CUDA_VISIBLE_DEVICES="" "$cufit" run -- python -c 'print("started")' || echo "exit $?"

if [ -z "$quick" ]; then
  echo "== made by pip"
  timed create "$cufit" env create --installer pip --force "$class"
  timed check "$cufit" env check "$class"
  timed run "$cufit" run -q -- python -W ignore "$work/ask.py"
fi

echo "== remove"
cd "$work/p"
timed remove "$cufit" env remove "$class"
ls -A .cufit/envs
"$cufit" env list
"$cufit" run -- python -c 'print("started")' || echo "exit $?"
"$cufit" lock --check
echo "== done"
