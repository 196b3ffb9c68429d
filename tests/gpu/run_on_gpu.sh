#!/bin/sh
# tests/gpu/run_on_gpu.sh CUFIT OUT: everything that needs a real GPU, in one go, on a machine with a driver and a
# Python that has torch. Changes no setting of the card. Results land in OUT; the last lines say what agreed.
set -u
cufit=$1
out=$2
here=$(dirname "$0")
python=$(command -v python3)
mkdir -p "$out"

echo "== doctor"
"$cufit" doctor --color never | tee "$out/doctor.txt"
"$cufit" doctor --json >"$out/doctor.json"
"$cufit" doctor --lang zh --color never >"$out/doctor.zh.txt"
"$cufit" doctor -v --color never >"$out/doctor-v.txt"
"$cufit" doctor --record "$out/facts.json" --html "$out/doctor.html" >/dev/null

echo "== agreement with nvidia-smi -q -x"
nvidia-smi -q -x >"$out/nvidia-smi.xml"
"$python" "$here/compare_nvidia_smi.py" "$out/doctor.json" "$out/nvidia-smi.xml" | tee "$out/compare-smi.txt" | tail -n 45

echo "== agreement with torch.utils.collect_env"
"$python" -m torch.utils.collect_env >"$out/torch-collect-env.txt" 2>/dev/null
"$cufit" collect-env >"$out/cufit-collect-env.txt"
"$python" "$here/compare_collect_env.py" "$out/torch-collect-env.txt" "$out/cufit-collect-env.txt" | tee "$out/compare-collect-env.txt"

echo "== inspect of the installed torch against torch.cuda.get_arch_list and cuobjdump"
lib=$("$python" -c 'import torch, os; print(os.path.join(os.path.dirname(torch.__file__), "lib"))' 2>/dev/null)
"$cufit" inspect "$lib/libtorch_cuda.so" --json >"$out/inspect.json"
"$cufit" inspect "$lib/libtorch_cuda.so" --gpu 9.0
"$python" -c 'import torch; print(torch.cuda.get_arch_list())' 2>/dev/null
if command -v cuobjdump >/dev/null; then
  cuobjdump --list-elf "$lib/libtorch_cuda.so" | sed 's/.*\.sm_/sm_/; s/\.cubin//' | sort | uniq -c
fi

echo "== what really gets loaded against what the simulation says"
"$python" "$here/compare_loads.py" "$out/doctor.json" | tee "$out/compare-loads.txt"

echo "== times: 10 runs each, milliseconds"
"$python" - "$cufit" "$lib" <<'PY' | tee "$out/times.txt"
import json, os, statistics, subprocess, sys, time
cufit, lib = sys.argv[1:]
def runs(command, count):
    walls, peak = [], 0
    for _ in range(count):
        start = time.perf_counter()
        process = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
        _, _, usage = os.wait4(process.pid, 0)
        walls.append((time.perf_counter() - start) * 1000)
        peak = max(peak, usage.ru_maxrss / 1024)
    print(f"{statistics.median(walls):9.1f} ms  (min {min(walls):.1f}, max {max(walls):.1f}, RSS {peak:.0f} MiB)  {' '.join(command)}")
runs([cufit, "doctor"], 10)
facts = json.loads(subprocess.run([cufit, "doctor", "--json"], capture_output=True, text=True).stdout)["facts"]
print("driver's own calls in the CUDA child:", round(facts["cuda"].get("driver_seconds", 0) * 1000, 1), "ms")
runs([cufit, "inspect", os.path.join(lib, "libtorch_cuda.so")], 10)
runs([cufit, "collect-env"], 5)
runs(["cuobjdump", "--list-elf", os.path.join(lib, "libtorch_cuda.so")], 3)
runs([sys.executable, "-m", "torch.utils.collect_env"], 3)
PY

echo "== doctor --deep"
"$cufit" doctor --deep --color never >"$out/deep.txt"
echo "exit $?"
"$cufit" doctor --deep --json >"$out/deep.json"
"$python" - "$out/deep.json" <<'PY'
import json, sys
facts = json.load(open(sys.argv[1]))["facts"]
for device in facts["cuda"].get("devices", []):
    print({key: device.get(key, {}).get("value", device.get(key)) for key in ("name", "compute_check", "memory_test", "memory_tested_bytes")})
for env in facts["envs"]:
    print(env["path"], "torch_run:", env.get("torch_run"))
PY

echo "== check_machine.py"
"$python" "$here/check_machine.py" "$cufit" "$out/check_machine" 2>&1 | tail -n 40
