# SPDX-License-Identifier: Apache-2.0
"""What the program is run over: recorded inputs for each schema, no network and no GPU.

Each run is a name, the schemas that it must print and a shell script. "$CUFIT" is the program, $TMP
an empty folder; the script starts in the source tree. All JSON that it prints is checked, and the
TOML of files named cufit.lock that it leaves in $TMP.
"""

LAUNCH = """
P="$TMP/p" M="$TMP/m" R="$PWD"; sh tests/run/project.sh "$P"
machine() { rm -rf "$M"; sh "$R/tests/run/machine.sh" "$M" "$@"; }
B="${CUFIT%/cufit}"; CUFIT="$B/tests/on_machine/cufit"
export CUFIT_TEST_MACHINE="$M" CUFIT_STANDIN="$TMP/standin" XDG_CACHE_HOME="$TMP/cache"
export LD_LIBRARY_PATH="$B/standin"
standin() {
  {
    printf 'driver = 535.183.01\\ncuda = 12020\\n[gpu]\\nname = NVIDIA GeForce RTX 4090\\n'
    printf 'uuid = GPU-00000000-1111-2222-3333-444444444444\\npci = 0000:01:00.0\\ncc = 8.9\\n'
    printf 'memory = 25757220864\\nused = 20064771072\\nreserved = 0\\n'
  } >"$TMP/standin"
}
"""

LOCK = """
export CUFIT_UV=tests/standin/uv; D="$TMP/p"; mkdir "$D"
printf 'torch<=2.8.0\\nnumpy\\nsdist-only==2.8.3\\n' >"$D/r.txt"
lock() {
  "$CUFIT" lock -r "$D/r.txt" --python 3.11 --for "RTX 5090,580" --for "A800,470" \\
    --default-index-only -o "$D" "$@"
}
"""

IMAGE = """
R="$PWD"; cd "$TMP"; S=img/opt/venv/lib/python3.12/site-packages
C=img/usr/local/cuda/compat L=img/usr/lib/x86_64-linux-gnu M=$S/torch-2.6.0.dist-info
mkdir -p $S/torch/lib $M $S/nvidia/cudnn/lib $L $C up
cp "$R/fuzz/seeds/elf/64gnu" $S/torch/lib/libtorch_cuda.so; : >$S/torch/__init__.py
printf 'home = /usr/bin\\nversion = 3.12.3\\n' >img/opt/venv/pyvenv.cfg
printf "__version__ = '2.6.0+cu124'\\ncuda = '12.4'\\nhip = None\\n" >$S/torch/version.py
printf 'Metadata-Version: 2.1\\nName: torch\\nVersion: 2.6.0+cu124\\n\\n' >$M/METADATA
head -c 9000000 /dev/zero | tee $S/nvidia/cudnn/lib/libcudnn.so.9 >$L/libcudnn.so.9.1.0
printf x >$L/libcuda.so.535.183.01; cp "$R/fuzz/seeds/elf/64gnu" $C/libcuda.so.550.54.15
ln -s libcuda.so.550.54.15 $C/libcuda.so.1
mkdir img/gone; printf deleted >img/gone/file; : >up/.wh.gone
tar -C img --sort=name -cf base.tar .; tar -C up -czf top.tar .
{
  printf '{"architecture":"amd64","os":"linux","config":{"Entrypoint":["python"],'
  printf '"Env":["PATH=/opt/venv/bin","NVIDIA_REQUIRE_CUDA=cuda>=12.6",'
  printf '"NVIDIA_DRIVER_CAPABILITIES=utility"]}}'
} >c.json
printf '[{"Config":"c.json","RepoTags":["team:1"],"Layers":["base.tar","top.tar"]}]' >manifest.json
tar -cf image.tar base.tar top.tar c.json manifest.json
"""

CARD = """
B="${CUFIT%/cufit}"; export LD_LIBRARY_PATH="$B/guard_card" CUFIT_STANDIN="$TMP/machine" CUFIT_CARD="$TMP/card"
{
  printf '[gpu]\\nname = Card\\nuuid = GPU-00000000-1111-2222-3333-444444444440\\n'
  printf 'pci = 0000:65:00.0\\nmemory = 8589934592\\ncontext = 314572800\\n'
} >"$TMP/machine"
python3 - "$TMP/domain" <<'END'
import os, struct, sys
header = b'CUFITQD1' + struct.pack('<6I4Q', 1, 4096, 4, 512, 0, 0, 1 << 30, 300 << 20, 0, 0) + b'team'
open(sys.argv[1], 'wb').write(header.ljust(4096 + 4 * 512, b'\\0'))
os.chmod(sys.argv[1], 0o600)
END
"""

OOM = (
    "torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total "
    "capacity of 23.65 GiB of which 1.02 GiB is free. Process 1234 has 12.30 GiB memory in use. "
    "Including non-PyTorch memory, this process has 10.20 GiB memory in use. Of the allocated "
    "memory 9.80 GiB is allocated by PyTorch, and 120.00 MiB is reserved by PyTorch but "
    "unallocated.")

RUNS = [
    ("doctor of every recorded machine", ["cufit.doctor/1"], """
for file in tests/machines/*/facts.json; do "$CUFIT" doctor --json --from $file; done"""),
    ("steps of every recorded machine", ["cufit.fix/1"], """
for file in tests/machines/*/facts.json; do "$CUFIT" doctor --fix --json --from $file; done"""),
    ("resolve by updated tables", ["cufit.resolve/1"], """
export XDG_DATA_HOME="$TMP/data"; "${CUFIT%/cufit}/gen-tables" data --release "$TMP/t.toml"
"$CUFIT" self update-tables "$TMP/t.toml" --sha256 $(sha256sum "$TMP/t.toml" | cut -c 1-64) >"$TMP/said"
"$CUFIT" resolve --json torch --for "RTX 4090,535" """),
    ("wheel variants", ["cufit.variant_properties/1", "cufit.inspect/1"], """
"$CUFIT" self variant-properties --json
printf '{"variants": {"a": {"nvidia": {"sm_arch": ["90_real"]}}}}' >"$TMP/a-variants.json"
"$CUFIT" inspect --json --gpu 9.0 "$TMP/a-variants.json" """),
    ("doctor, fast", ["cufit.doctor/1"], """
for m in tests/machines/*/facts.json; do "$CUFIT" doctor --fast --from "$m" --json; done; true
"""),
    ("fleet check", ["cufit.fleet/1"], LOCK + """
mkdir "$TMP/f"
for m in h200-recorded gpu-fallen-off-bus driver-hangs wsl1 a100-mig; do
  cp tests/machines/$m/facts.json "$TMP/f/$m.json"
done
echo garbage >"$TMP/f/z.json"; lock >/dev/null
"$CUFIT" fleet check --from "$TMP/f" --json --lock "$D"
"$CUFIT" fleet check --from "$TMP/f" --json --baseline tests/machines/h200-recorded/facts.json; true
"""),
    ("doctor, what if", ["cufit.doctor/1"], """
for name in a100-mig wsl2-works no-gpu-at-all; do
  "$CUFIT" doctor --json --gpu "RTX 5090" --driver 550 --from tests/machines/$name/facts.json
done"""),
    ("doctor of this machine", ["cufit.doctor/1", "cufit.facts/1"], """
"$CUFIT" doctor --json --record "$TMP/facts.json" >"$TMP/out"; cat "$TMP/out" "$TMP/facts.json" """),
    ("doctor of stand-in drivers", ["cufit.doctor/1"], LAUNCH + """
standin; export CUFIT_TEST_MACHINE=; "$CUFIT" doctor --json
printf 'driver = 535.183.01\\nhang = nvmlInit_v2\\n' >"$TMP/standin"; "$CUFIT" doctor --json"""),
    ("collect-env", ["cufit.collect_env/1"], """
"$CUFIT" collect-env --json
for name in h200-recorded wsl2-works no-gpu-at-all; do
  "$CUFIT" collect-env --json --from tests/machines/$name/facts.json
done"""),
    ("inspect", ["cufit.inspect/1"], """
"$CUFIT" inspect fuzz/seeds/elf --json --gpu "RTX 4090" --gpu 9.0 --driver 550
"$CUFIT" inspect nowhere --json"""),
    ("explain, texts", ["cufit.explain/1"], """
for cause in tests/texts/*; do set -- $cause/*; "$CUFIT" explain --json $1; done
echo nothing | "$CUFIT" explain --json"""),
    ("explain, with a machine", ["cufit.explain/1"], """
printf '%s\\n' "$OOM" | "$CUFIT" explain --json
printf '%s\\n' "$OOM" "| Driver Version: 470.57.02    CUDA Version: 11.4 |" |
  "$CUFIT" explain --json --from tests/machines/rtx3090-driver520-cu121/facts.json
echo "RuntimeError: The NVIDIA driver on your system is too old (found version 11040)." |
  "$CUFIT" explain --json --from tests/machines/rtx3090-driver520-cu121/facts.json
""".replace("$OOM", OOM)),
    ("resolve", ["cufit.resolve/1"], """
"$CUFIT" resolve --json --for "RTX 4090,535" --for cpu numpy "torch>=2.4"
"$CUFIT" resolve --json --for "GTX 1080 + RTX 5090,580"
"$CUFIT" resolve --json --for "RTX 3090,520" "torch>=2.8"; "$CUFIT" resolve --json --for "V100,580"
printf '[policy]\\ncuda = ["cu126", "cu118"]\\n' >"$TMP/p.toml"
"$CUFIT" resolve --json --for "RTX 4090" --policy "$TMP/p.toml"
"$CUFIT" resolve --json --for tests/machines/h200-recorded/facts.json"""),
    ("lock", ["cufit.lock.report/1", "cufit.lock/1", "cufit.lock.check/1"], LOCK + """
lock --json; lock --json; STANDIN_UV=unsized lock --json --upgrade
"$CUFIT" lock --check --json -o "$D"; "$CUFIT" lock --check --offline --json -o "$D"
echo >>"$D/pylock.cu117.toml"; printf '[policy]\\ncuda_denied = ["cu128"]\\n' >"$D/cufit.toml"
"$CUFIT" lock --check --json -o "$D"
"$CUFIT" lock --json --for "RTX 3090,520" "torch>=2.8" -o "$TMP/none" """),
    ("environments", ["cufit.env/1", "cufit.env.create/1", "cufit.env.list/1", "cufit.env.check/1",
                      "cufit.env.remove/1"], LOCK + """
lock >"$TMP/out"; "$CUFIT" env list --json --lock "$D"; "$CUFIT" env create --json --lock "$D"
"$CUFIT" env create --json cu128 --lock "$D"; cat "$D/.cufit/envs/cu128.json"
"$CUFIT" env list --json --lock "$D"; "$CUFIT" env check --json --lock "$D"
rm -r "$D"/.cufit/envs/cu128/lib/python3.11/site-packages/numpy-*
"$CUFIT" env check --json --lock "$D"
echo '{' >"$D/.cufit/envs/cu117.json"; "$CUFIT" env list --json --lock "$D"
"$CUFIT" env check --json --lock "$D"; "$CUFIT" env remove --json cu128 --lock "$D"
"$CUFIT" env remove --json cu128 --lock "$D" """),
    ("manifests", ["cufit.k8s.lint/1"], IMAGE + """
cd "$R"; for file in tests/k8s/findings/*.yaml; do "$CUFIT" k8s lint --json $file; done
"$CUFIT" k8s lint --json tests/k8s/healthy/*.yaml --nodes tests/k8s/nodes.yaml
"$CUFIT" k8s lint --json tests/k8s/findings/*.yaml --nodes tests/machines --image "$TMP/image.tar"
"$CUFIT" export --to k8s-quota --gpus 4 --mig 1g.10gb=2 --json | "$CUFIT" k8s lint --json -"""),
    ("preflight", ["cufit.preflight/1"], LAUNCH + """
machine 535.183.01 2684; standin; cd "$P"
sh "$R/tests/run/env.sh" "$M/e126" 2.14.1+cu126 12.6
sh "$R/tests/run/env.sh" "$M/e130" 2.14.1+cu130 13.0
"$CUFIT" preflight --json --env /e126; "$CUFIT" preflight --json --env /e130; "$CUFIT" preflight --json
"$CUFIT" preflight --json --env no-such; "$CUFIT" preflight --json --machine
printf '[policy]\\ndriver_min = "550"\\n' >cufit.toml; "$CUFIT" preflight --json --env /e126
machine none; "$CUFIT" preflight --json --machine; "$CUFIT" preflight --json"""),
    ("run", ["cufit.run.report/1"], LAUNCH + """
machine 535.183.01 2684; standin; cd "$P"; mkdir -p "$M/sys/fs/cgroup/job"
echo 0::/job >"$M/proc/self/cgroup"; printf 'oom_kill 1\\n' >"$M/sys/fs/cgroup/job/memory.events"
printf 'oom_kill 4\\n' >"$M/proc/vmstat"
printf 'MemTotal: 16000000 kB\\nMemFree: 1 kB\\nMemAvailable: 9000000 kB\\n' >"$M/proc/meminfo"
end() { rm -f r.json; "$CUFIT" run --supervise -q --report r.txt "$@" >"$TMP/out" 2>&1; cat r.json; }
end -- sh -c 'sleep 0.5; echo "$0" >&2; exit 1' "$OOM"; end -- sh -c 'kill -KILL $$'
end -- sh -c 'printf "Traceback (most recent call last):\\nValueError: bad step\\n" >&2; exit 1'
rm "$M/proc/meminfo" "$TMP/standin"; end -- false""".replace("$OOM", OOM)),
    ("diff", ["cufit.diff/1"], LOCK + """
M=tests/machines
"$CUFIT" diff --json $M/rtx4090-driver535-cu121/facts.json $M/a800-driver470-cu121/facts.json
"$CUFIT" diff --json $M/wsl2-works/facts.json $M/wsl2-libcuda-not-found/facts.json
"$CUFIT" diff --json $M/no-gpu-at-all/facts.json $M/no-gpu-at-all/facts.json
{
  printf 'PyTorch version: 2.8.0+cu128\\nOS: Debian GNU/Linux 12 (bookworm) (x86_64)\\n'
  printf 'Python version: 3.11.7 (64-bit runtime)\\nIs CUDA available: False\\n'
  printf 'GPU models and configuration: Could not collect\\n[pip3] torch==2.8.0\\n'
} >"$TMP/ce.txt"
"$CUFIT" diff --json "$TMP/ce.txt" $M/a800-driver470-cu121/facts.json
lock >"$TMP/out"; "$CUFIT" diff --json "$D" tests/export/lock
"$CUFIT" diff --json "$D/pylock.cu128.toml" tests/export/lock/pylock.cu130.toml"""),
    ("export", ["cufit.export/1"], """
for to in uv pip conda pixi dockerfile compose devcontainer k8s apptainer slurm; do
  "$CUFIT" export --json --to $to --lock tests/export/lock --class cu126
done
"$CUFIT" export --json --to dockerfile --with jupyter,ssh --lock tests/export/lock
for to in prometheus-rules alertmanager grafana compose-monitoring; do
  "$CUFIT" export --json --to $to
done"""),
    ("image audit", ["cufit.image.audit/1"], IMAGE + """
"$CUFIT" image audit image.tar --json --for "RTX 4090,535" --for cpu --for "A100,550"
"$CUFIT" image audit image.tar --json
"$CUFIT" export --to dockerfile --check image.tar --json
cd "$R" && TMP="$TMP/serving" && mkdir "$TMP"
. tests/cli/image/serving_image.sh && serving_image
"$CUFIT" image audit --check image.tar --json"""),
    ("fit of traces", ["cufit.fit/1"], """
T=tests/fit
"$CUFIT" fit --json --gpu all --batch 12 --events $T/small-8.events $T/small-16.events
"$CUFIT" fit --json --gpu "RTX 3090" --gpu 1GiB --events $T/small-8.events $T/small-16.events
"$CUFIT" fit --json --plan --gpu "Tesla T4" --batch 4 --events $T/plan-8.events \\
  $T/plan-16.events \\
  $T/plan-checkpointing-8.events $T/plan-checkpointing-16.events $T/plan-bf16-8.events \\
  $T/plan-bf16-16.events
for name in apart-8 idle-8 one-1 plain-8 validated-8 fixed-8 cpu-8; do
  "$CUFIT" fit --json --gpu 4GiB --events $T/$name.events
done
"$CUFIT" fit --json --gpu 4GiB --events $T/dealt-w2-r0-8.events $T/dealt-w2-r1-8.events \\
  $T/dealt-w4-r0-8.events $T/dealt-w8-r0-8.events
"$CUFIT" fit --json --events $T/stages-w2-r0-8.events $T/stages-w2-r1-8.events
"$CUFIT" fit --json --events $T/shared-w2-r0-8.events
"$CUFIT" fit --json --plan --events $T/copies-8.events $T/copies-fsdp-8.events
P=tests/traces/pairs
"$CUFIT" fit --json --batch 64 --from $P/lstm-16.pkl.gz --batch-was 16 --from $P/lstm-8.pkl.gz \\
  --batch-was 8"""),
    ("fit of a model that is served", ["cufit.fit.serve/1"], """
C=tests/fit/serve/configs; . tests/cli/fit/served_models.sh
served() { mkdir -p "$TMP/$1" && cp $C/$1.json "$TMP/$1/config.json"; echo "$TMP/$1"; }
"$CUFIT" fit --json --serve "$(served llama-3.1-8b)" --gpu "RTX 4090" --gpu 24GiB --gpu "Tesla T4"
"$CUFIT" fit --json --serve "$(served qwen3-next-80b)" --gpu "H200 SXM" --tp 2 --engine sglang
"$CUFIT" fit --json --serve "$(served qwen2.5-7b)" --engine transformers --concurrency 2 --gpu L40S
tiny_gguf "$TMP/tiny.gguf"
"$CUFIT" fit --json --serve "$TMP/tiny.gguf" --gpu 1GiB --kv-cache-dtype q8_0
"$CUFIT" fit --json --serve "$TMP/tiny.gguf" --gpu 1430MiB --context 1024
"$CUFIT" fit --json --serve "$(served qwen2.5-7b)" --gpu L4 --tp 7
"$CUFIT" fit --json --serve "$TMP/tiny.gguf" """),
    ("fit of programs that fail", ["cufit.fit/1"], """
FIT_CASE=failing FIT_OWN=8 FIT_EXIT=1 "$CUFIT" fit --json -- tests/fit/python train.py
FIT_CASE=idle FIT_OWN=8 "$CUFIT" fit --json -- tests/fit/python train.py
FIT_CASE=nostep FIT_OWN=8 "$CUFIT" fit --json -- tests/fit/python train.py
model() {
  "$CUFIT" fit tests/fit/models/llama --train full --seq 128 --batch 8 --json tests/fit/python
}
for case in model model-class model-missing model-targets; do FIT_CASE=$case model; done
export FIT_EXIT=4 FIT_SAYS="no torch"; model; "$CUFIT" fit --json -- tests/fit/python train.py"""),
    ("mem explain", ["cufit.mem.explain/1"], """
for trace in tests/traces/oom/*.gz tests/traces/failures/*.gz tests/traces/two-gpus.pkl.gz \\
    tests/traces/varlen.pkl.gz tests/traces/graphs.pkl.gz tests/traces/accum.pkl.gz; do
  "$CUFIT" mem explain --json $trace
done
for limit in 1 17.963 80; do
  "$CUFIT" mem explain --json --limit $limit tests/traces/oom-varlen.pkl.gz
done"""),
    ("mem replay", ["cufit.mem.replay/1"], """
"$CUFIT" mem replay --json --all tests/traces/oom-varlen.pkl.gz
"$CUFIT" mem replay --json --limit 1 --set backend:cudaMallocAsync --set "" tests/traces/varlen.pkl.gz
"$CUFIT" mem replay --json --gpu "RTX 3090" tests/traces/varlen-ring.pkl.gz"""),
    ("mem compare", ["cufit.mem.compare/1"], """
"$CUFIT" mem compare --json tests/traces/varlen.pkl.gz tests/traces/trace-gpt2-stacks.pkl.gz
"$CUFIT" mem compare --json tests/traces/oom-varlen.pkl.gz tests/traces/cnn.pkl.gz"""),
    ("pack", ["cufit.pack/1"], """
printf '[[job]]\nname = "a"\nsize = "20G"\ncommand = "python a.py"\ncount = 3\n' >"$TMP/jobs.toml"
printf '[[job]]\ntotal = "90G"\n[[job]]\nsize = "9G"\n' >>"$TMP/jobs.toml"
"$CUFIT" pack --json "$TMP/jobs.toml" --gpu "2xH100 NVL" --gpu 24
"$CUFIT" pack --json "$TMP/jobs.toml" --gpu "2xH100 NVL" --mig
"$CUFIT" pack --json "$TMP/jobs.toml" --gpu "2xH100 NVL" --goal headroom
"$CUFIT" pack --json 20G --gpu tests/machines/a100-mig/facts.json"""),
    ("fleet plan", ["cufit.fleet.plan/1"], """
mkdir "$TMP/f"; for one in l40s-sm89-cu130 h200-torch211-cu130 no-gpu-at-all a100-mig; do
  cp tests/machines/$one/facts.json "$TMP/f/$one.json"
done
printf garbage >"$TMP/f/silent.json"
printf '[[job]]\nname = "a"\nsize = "20G"\ncommand = "python a.py"\ncount = 3\n' >"$TMP/jobs.toml"
printf '[[job]]\ntotal = "190G"\n[[job]]\nsize = "9G"\ngpus = 2\n' >>"$TMP/jobs.toml"
for engine in ssh slurm kubernetes; do
  "$CUFIT" fleet plan --json --from "$TMP/f" --engine $engine "$TMP/jobs.toml"
done
"$CUFIT" fleet plan --json --from "$TMP/f" --goal headroom 20G 9G
"$CUFIT" fleet plan --json --from "$TMP/f" --mig 20G 9G"""),
    ("mig plan", ["cufit.mig.plan/1"], """
"$CUFIT" mig plan --json --gpu "H100 NVL" --job 20 --job 8 --job 200
"$CUFIT" mig plan --json --gpu B200 --job 60; "$CUFIT" mig plan --json --gpu A30"""),
    ("top", ["cufit.top/1", "cufit.samples/1"], """
. tests/cli/top/machine.sh
machine; gpu 0 'used = 5000' 'mig.current = 1'
printf '[mig]\\nname = NVIDIA H200 MIG 1g.18gb\\nuuid = MIG-1\\nmemory = 4000\\n' >>"$CUFIT_STANDIN"
gpu 1 'used = 90000'; process "pid = $$" 'used = 40000' 'sm = 3'; process 'pid = 4194305'
gpu 2 'fail.nvmlDeviceGetHandleByIndex_v2 = 15'
"$CUFIT" top --json; "$CUFIT" top --json --interval 0.1 --samples 3 --record "$TMP/samples" 2>/dev/null
cat "$TMP/samples"
LD_LIBRARY_PATH=/nowhere "$CUFIT" top --json"""),
    ("watch", ["cufit.watch/1"], """
. tests/cli/watch/recording.sh
alarms "$TMP/a.jsonl"; "$CUFIT" watch --json --from "$TMP/a.jsonl" --repeat 5m 2>/dev/null
printf '[[rule]]\\nid = "gpu_lost"\\nseverity = "info"\\n' >"$TMP/r.toml"
"$CUFIT" watch --json --from "$TMP/a.jsonl" --rules "$TMP/r.toml" 2>/dev/null
"$CUFIT" watch --test --exec "cat >$TMP/said" >/dev/null; cat "$TMP/said" """),
    ("quota plan", ["cufit.quota/1"], """
"$CUFIT" quota plan --json
for file in tests/machines/*/facts.json; do "$CUFIT" quota plan --json --from $file; done"""),
    ("quota status", ["cufit.quota/1"], CARD + """
CUFIT_DOMAIN="$TMP/domain" LD_PRELOAD="$B/libcufit-guard.so" "$B/guard_card/guard_actor" dlsym "init
context 0
alloc a 500M
sleep 20" >"$TMP/said" &
for i in 1 2 3 4 5 6 7 8 9; do sleep 0.3; grep -q alloc "$TMP/said" && break; done
"$CUFIT" quota status --json "$TMP/domain"; kill $!
mkdir -p "$TMP/cufit"; echo junk >"$TMP/cufit/junk"; CUFIT_RUN_DIR="$TMP/cufit" "$CUFIT" quota status --json"""),
    ("bench", ["cufit.bench/1", "cufit.bench.loader/1", "cufit.resolve/1"], """
. tests/bench/stub.sh; stub_env "$TMP/slow"; stub_env "$TMP/fast"; mkdir "$TMP/none"
bench() { "$CUFIT" bench --json --rounds 12 --time 1 --env "$TMP/fast" "$@"; }
bench --device cpu --env "$TMP/slow" --env "$TMP/none" --workload "$TMP/naps.py"; bench
bench --device cpu --precision fp16 --workload "$TMP/naps.py"
"$CUFIT" bench loader --json --time 4 --workers 1,2 --env "$TMP/fast" -- python "$TMP/train.py" 2>"$TMP/err"
"$CUFIT" resolve --json --for tests/machines/h200-recorded/facts.json --measured tests/bench/measured.json torch"""),
    ("quota verify", ["cufit.quota.verify/1"], CARD + """
"$CUFIT" quota verify --json -- true; CUFIT_DOMAIN="$TMP/domain" "$CUFIT" quota verify --json
LD_LIBRARY_PATH=/nowhere "$CUFIT" quota verify --json"""),
]
