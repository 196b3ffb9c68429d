#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tests/gpu/record_traces.py OUT: the traces of tests/traces and what the same workloads really took under other settings.

Every workload of allocator_workload.py in processes of its own: traced under several settings, then measured (not traced)
under each settings string without a limit and under limits of 1.02, 1.08 and 1.2 times its peak of allocated bytes.
Writes OUT/traces.tar and OUT/runs.jsonl. Needs one GPU with 40 GB free; three runs at a time.
"""
import concurrent.futures
import json
import os
import subprocess
import sys
import tarfile

out = sys.argv[1]
here = os.path.dirname(os.path.abspath(__file__))
NAMES = ["cnn", "varlen", "accum", "amp", "graphs", "streams", "lora"]
SETTINGS = ["", "expandable_segments:True", "max_split_size_mb:64", "max_split_size_mb:256,max_non_split_rounding_mb:40",
            "roundup_power2_divisions:4", "roundup_power2_divisions:[64:8,256:4,>:2]", "large_segment_size_mb:40",
            "expandable_segments:True,max_split_size_mb:128"]
LIMITED = ["", "expandable_segments:True", "garbage_collection_threshold:0.7", "max_split_size_mb:64,garbage_collection_threshold:0.8"]


def one(spec):
    command = [sys.executable, os.path.join(here, "allocator_workload.py"), json.dumps(spec)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300)
    for line in done.stdout.splitlines():
        if line.startswith("RESULT "):
            return json.loads(line[7:])
    return dict(spec, outcome="error", message=(done.stderr or done.stdout)[-600:])


def many(specs):
    with concurrent.futures.ThreadPoolExecutor(int(os.environ.get("AT_A_TIME", "8"))) as pool:
        return list(pool.map(one, specs))


os.makedirs(out, exist_ok=True)
traced = [{"name": name, "trace": f"{out}/{name}.pkl.gz"} for name in NAMES]
traced += [{"name": "varlen", "conf": "expandable_segments:True", "trace": f"{out}/varlen-expandable.pkl.gz"},
           {"name": "streams", "conf": "max_split_size_mb:64", "trace": f"{out}/streams-split64.pkl.gz"},
           {"name": "amp", "conf": "roundup_power2_divisions:4", "trace": f"{out}/amp-roundup4.pkl.gz"},
           {"name": "varlen", "entries": 9000, "trace": f"{out}/varlen-ring.pkl.gz"}]
rows = many(traced)
base = {row["name"]: row["peak_allocated"] for row in rows if row["outcome"] == "ok" and not row.get("conf")}
limited = []
for name, peak in base.items():
    for times in (1.02, 1.08, 1.2):
        limited += [{"name": name, "conf": conf, "limit": int(peak * times)} for conf in LIMITED]
rows += many([{"name": name, "conf": conf} for name in base for conf in SETTINGS] + limited)
# Snapshots of runs that died, and of one that met the limit and lived.
for name in ("varlen", "amp"):
    if name in base:
        rows += many([{"name": name, "limit": int(base[name] * times), "trace": f"{out}/{name}-limit{times}.pkl.gz"}
                      for times in (1.02, 1.2)])
with open(os.path.join(out, "runs.jsonl"), "w", encoding="utf-8") as file:
    for row in rows:
        row.pop("gpu_uuid", None)
        row["trace"] = os.path.basename(row["trace"]) if row.get("trace") else None
        file.write(json.dumps(row) + "\n")
with tarfile.open(os.path.join(out, "traces.tar"), "w") as tar:
    for name in sorted(os.listdir(out)):
        if name.endswith(".pkl.gz"):
            tar.add(os.path.join(out, name), name)
            os.unlink(os.path.join(out, name))
for row in rows:
    print(row["name"], row.get("conf") or "-", row.get("limit") or "-", row["outcome"], row.get("peak_allocated"), row.get("peak_reserved"),
          row.get("retries"), row.get("events") or "", (row.get("message") or "")[-300:] if row["outcome"] == "error" else "")
