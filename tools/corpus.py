#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""How often `cufit explain` names the right cause, over labelled failures.

corpus.py CUFIT [CASES...]: a file CASES.jsonl has one case a line, with `id`, `evidence` (the text), `root_cause`
("none": must get no answer), `also_acceptable`, `evidence_sufficient` (true where it is absent); a folder has the texts
of each cause in a sub-folder, as tests/texts, which is asked where nothing is named. The first answer counts when it is
the cause or an acceptable one; where the evidence cannot decide, one of the first three does.

A case whose `source` (address) is one that anything was learned from (learn/sources.tsv,
learn/seen.tsv, data/, tests/texts) is no test: it is left out and counted. `--grades FILE` judges steps as well: a line
`id<TAB>right|partly|wrong|harmful` is what a reader said of the first next step of that case; a
case without a line has no grade. `--table FILE` writes a line for each case: id, address, cause,
answer, confidence, grade.
"""

import argparse
import collections
import concurrent.futures
import json
import os
import pathlib
import re
import subprocess
import sys

ROOT = pathlib.Path(__file__).resolve().parent.parent
DEFAULT = [ROOT / "tests" / "texts"]
GRADES = ("right", "partly", "wrong", "harmful")


def learned_from():
    """The addresses of threads that words, signs or texts of this repository were made from."""
    found = set()
    for path in [
        ROOT / "learn" / "sources.tsv",
        ROOT / "learn" / "seen.tsv",
        *(ROOT / "data").rglob("*.toml"),
        *(ROOT / "tests" / "texts").rglob("*.txt"),
    ]:
        found.update(
            re.findall(
                r"github\.com/[\w.-]+/[\w.-]+/(?:issues|pull|discussions)/\d+",
                path.read_text("utf-8", "replace"),
            )
        )
    return found


def thread_of(case):
    found = re.search(
        r"github\.com/[\w.-]+/[\w.-]+/(?:issues|pull|discussions)/\d+", case.get("source", "")
    )
    return found[0] if found else None


def graded(path):
    rows = [
        line.split("\t") for line in path.read_text(encoding="utf-8").splitlines() if line.strip()
    ]
    bad = [row for row in rows if len(row) < 2 or row[1] not in GRADES]
    if bad:
        sys.exit(f"corpus: {path}: not a grade: {bad[0]}")
    return {row[0]: row[1] for row in rows}


def cases_of(path):
    if path.is_dir():
        return [
            {
                "id": f"{text.parent.name}/{text.stem}",
                "evidence": text.read_bytes(),
                "root_cause": "none" if text.parent.name == "no_cause" else text.parent.name,
            }
            for text in sorted(path.glob("*/*.txt"))
        ]
    with open(path, encoding="utf-8") as file:
        cases = [json.loads(line) for line in file if line.strip()]
    return [{**case, "evidence": case["evidence"].encode("utf-8", "replace")} for case in cases]


def explain(program, text):
    done = subprocess.run(
        [program, "explain", "--json"],
        input=text,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        check=False,
    )
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
    print(
        f"{path}: n {n}, top-1 {percent(first, n)}, top-3 {percent(third, n)}, "
        f"certain {percent(certain_right, certain)}, no answer {percent(silent, n)}"
    )
    for line in wrong_certain:
        print(f"  certain and wrong: {line}")
    for (expected, got), found in sorted(
        confused.items(), key=lambda item: (-len(item[1]), item[0])
    ):
        print(f"  {expected} -> {got}: {len(found)}  {' '.join(found)}")


def report_steps(cases, grades):
    given = collections.Counter(grades[case["id"]] for case in cases if case["id"] in grades)
    n = sum(given.values())
    print(
        "  first next step: " + ", ".join(f"{grade} {percent(given[grade], n)}" for grade in GRADES)
    )


def write_table(file, cases, answers, grades):
    for case, causes in zip(cases, answers, strict=True):
        first = causes[0] if causes else {"id": "none", "confidence": "-"}
        print(
            case["id"],
            case.get("source", ""),
            case["root_cause"],
            first["id"],
            first["confidence"],
            grades.get(case["id"], "-"),
            sep="\t",
            file=file,
        )


def main():
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("program")
    parser.add_argument("cases", nargs="*", type=pathlib.Path)
    parser.add_argument("--grades", type=pathlib.Path)
    parser.add_argument("--table", type=argparse.FileType("w", encoding="utf-8"))
    given = parser.parse_args()
    paths = given.cases or DEFAULT
    absent = [str(path) for path in paths if not path.exists()]
    if absent:
        sys.exit(f"corpus: nothing measured: no such file or folder: {', '.join(absent)}")
    grades, learned = graded(given.grades) if given.grades else {}, learned_from()
    for path in paths:
        cases = cases_of(path)
        unseen = [case for case in cases if thread_of(case) not in learned]
        if len(unseen) < len(cases):
            print(
                f"{path}: {len(cases) - len(unseen)} cases are of threads that something was learned from: left out"
            )
        if not unseen:
            sys.exit(f"corpus: nothing measured: no case in {path}")
        with concurrent.futures.ThreadPoolExecutor(os.cpu_count()) as pool:
            answers = list(pool.map(lambda case: explain(given.program, case["evidence"]), unseen))
        report(path, unseen, answers)
        if grades:
            report_steps(unseen, grades)
        if given.table:
            write_table(given.table, unseen, answers, grades)


main()
