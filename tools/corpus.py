#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often `cufit explain` names the right cause, over labelled failures.

corpus.py CUFIT [CASES...]: a file CASES.jsonl has one case a line, with `id`, `evidence` (the text), `root_cause`
("none": must get no answer), `also_acceptable`, `evidence_sufficient` (true where it is absent); a folder has the texts
of each cause in a sub-folder, as tests/texts, which is asked where nothing is named. The first answer counts when it is
the cause or an acceptable one; where the evidence cannot decide, one of the first three does.
"""
import collections
import concurrent.futures
import json
import os
import pathlib
import subprocess
import sys

DEFAULT = [pathlib.Path(__file__).resolve().parent.parent / "tests" / "texts"]


def cases_of(path):
    if path.is_dir():
        return [{"id": f"{text.parent.name}/{text.stem}", "evidence": text.read_bytes(),
                 "root_cause": "none" if text.parent.name == "no_cause" else text.parent.name}
                for text in sorted(path.glob("*/*.txt"))]
    with open(path, encoding="utf-8") as file:
        cases = [json.loads(line) for line in file if line.strip()]
    return [{**case, "evidence": case["evidence"].encode("utf-8", "replace")} for case in cases]


def explain(program, text):
    done = subprocess.run([program, "explain", "--json"], input=text,
                          stdout=subprocess.PIPE, stderr=subprocess.PIPE, check=False)
    if done.returncode not in (0, 1):
        sys.exit(f"corpus: exit code {done.returncode}: {done.stderr.decode(errors='replace')}")
    return json.loads(done.stdout)["causes"]


def percent(part, whole):
    return f"{part}/{whole} ({100 * part / whole:.1f} %)" if whole else "0/0"


def report(path, cases, answers):
    first = third = certain = certain_right = silent = 0
    wrong_certain, confused = [], collections.defaultdict(list)
    for case, causes in zip(cases, answers, strict=True):
        accepted = {case["root_cause"], *case.get("also_acceptable", [])}
        ids = [cause["id"] for cause in causes] or ["none"]
        got = ids[0]
        in_three = bool(accepted & set(ids[:3]))
        right = in_three if not case.get("evidence_sufficient", True) else got in accepted
        first += right
        third += in_three
        silent += not causes
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
        sys.exit("usage: corpus.py CUFIT [CASES...]")
    program = sys.argv[1]
    paths = [pathlib.Path(name) for name in sys.argv[2:]] or DEFAULT
    absent = [str(path) for path in paths if not path.exists()]
    if absent:
        sys.exit(f"corpus: nothing measured: no such file or folder: {', '.join(absent)}")
    for path in paths:
        cases = cases_of(path)
        if not cases:
            sys.exit(f"corpus: nothing measured: no case in {path}")
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            answers = list(pool.map(lambda case: explain(program, case["evidence"]), cases))
        report(path, cases, answers)


main()
