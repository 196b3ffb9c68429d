#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often `cufit explain` names the right cause, over labelled failures.

corpus.py CUFIT [FILE.jsonl...]: one case a line, with `id`, `evidence` (the text), `root_cause`, `also_acceptable`,
`evidence_sufficient` (true where it is absent). The first answer counts when it is the cause or an acceptable one; where
the evidence cannot decide, one of the first three does.
"""
import collections
import concurrent.futures
import json
import os
import subprocess
import sys

DEFAULT = ["../shared/corpus/env-open.jsonl", "../shared/corpus/mem-open.jsonl"]


def explain(program, text):
    done = subprocess.run([program, "explain", "--json"], input=text.encode("utf-8", "replace"),
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"corpus: exit code {done.returncode}: {done.stderr.decode(errors='replace')}")
    return json.loads(done.stdout)["causes"]


def percent(part, whole):
    return f"{part}/{whole} ({100 * part / whole:.1f} %)" if whole else "0/0"


def report(path, cases, answers):
    first = third = certain = certain_right = silent = 0
    wrong_certain, confused = [], collections.defaultdict(list)
    for case, causes in zip(cases, answers):
        accepted = {case["root_cause"], *case.get("also_acceptable", [])}
        ids = [cause["id"] for cause in causes]
        got = ids[0] if ids else "-"
        in_three = bool(accepted & set(ids[:3]))
        right = in_three if not case.get("evidence_sufficient", True) else got in accepted
        first += right
        third += in_three
        silent += not ids
        if not right:
            rank = next((i + 1 for i, one in enumerate(ids) if one in accepted), 0)
            confused[case["root_cause"], got].append(case["id"] + (f"#{rank}" if rank else ""))
        if causes and causes[0]["confidence"] == "certain":
            certain += 1
            certain_right += right
            if not right:
                wrong_certain.append(f"{case['id']}: {case['root_cause']} -> {got}")
    n = len(cases)
    print(f"{path}: n {n}, top-1 {percent(first, n)}, top-3 {percent(third, n)}, "
          f"certain {percent(certain_right, certain)}, no answer {percent(silent, n)}")
    for line in wrong_certain:
        print(f"  certain and wrong: {line}")
    for (expected, got), found in sorted(confused.items(), key=lambda item: (-len(item[1]), item[0])):
        print(f"  {expected} -> {got}: {len(found)}  {' '.join(found)}")


def main():
    if len(sys.argv) < 2:
        sys.exit("usage: corpus.py CUFIT [FILE.jsonl...]")
    program = sys.argv[1]
    for path in sys.argv[2:] or DEFAULT:
        if not os.path.exists(path):
            print(f"{path}: skipped, there is no such file")
            continue
        with open(path, encoding="utf-8") as file:
            cases = [json.loads(line) for line in file if line.strip()]
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            answers = list(pool.map(lambda case: explain(program, case["evidence"]), cases))
        report(path, cases, answers)


main()
