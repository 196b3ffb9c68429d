#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Do the pages say what the program prints? pages_test.py CUFIT [PAGE...]

Every block that is marked `console` is run in the source folder; the others show what takes a GPU, torch or the network. The lines under a command have to be printed in that order; a line `...` stands for any lines, and `...` at the
end of a line for its rest.
"""

import os
import pathlib
import re
import subprocess
import sys
import tempfile

ROOT = pathlib.Path(__file__).resolve().parents[2]


def blocks(text):
    """(line number, [lines]) of every console block."""
    block, start, lines = None, 0, []
    for number, line in enumerate(text.splitlines(), 1):
        if line.startswith("```"):
            if block is None:
                block, start, lines = line[3:].strip(), number, []
            else:
                if block == "console":
                    yield start, lines
                block = None
        elif block is not None:
            lines.append(line)
    if block is not None:
        raise SystemExit(f"line {start}: a block without an end")


def commands(lines):
    """(command, [shown lines]) of one block; a command goes on after a backslash at the end of its line."""
    out = []
    for line in lines:
        if out and not out[-1][1] and out[-1][0].endswith("\\"):
            out[-1][0] = out[-1][0][:-1] + line.strip()
        elif line.startswith("$ "):
            out.append([line[2:], []])
        elif out:
            out[-1][1].append(line)
        else:
            raise SystemExit(f"a console block starts with `$ `, not `{line}`")
    return out


def shown_right(shown, printed):
    """None, or the first shown line that is not printed where it should be."""
    at, anywhere = 0, False
    for line in shown:
        if line.strip() == "...":
            anywhere = True
            continue
        cut = line.endswith(" ...")
        wanted = line[:-4].rstrip() if cut else line.rstrip()
        while at < len(printed):
            have = printed[at].rstrip()
            at += 1
            if have.startswith(wanted) if cut else have == wanted:
                break
            if not anywhere:
                return f"shown `{line}`, printed `{have}`"
        else:
            return f"shown `{line}`, not printed"
        anywhere = False
    return None


def run(command, cufit, home):
    env = {key: value for key, value in os.environ.items() if not key.startswith(("CUFIT", "UV_", "PIP_", "LC_", "LANG"))}
    env |= {"PATH": f"{home}/bin:{env['PATH']}", "HOME": home, "XDG_CACHE_HOME": f"{home}/cache", "TMPDIR": f"{home}/tmp", "LC_ALL": "C.UTF-8", "COLUMNS": "100"}
    done = subprocess.run(["sh", "-c", command], cwd=ROOT, env=env, text=True, timeout=300, stdin=subprocess.DEVNULL,
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT)  # fmt: skip
    return done.stdout.splitlines()


def check(page, cufit, home):
    bad = ran = 0
    for start, lines in blocks(page.read_text(encoding="utf-8")):
        for command, shown in commands(lines):
            ran += 1
            problem = shown_right(shown, run(command, cufit, home))
            if problem:
                bad += 1
                print(f"{page.relative_to(ROOT)}:{start}: `{command}`: {problem}")
    return ran, bad


def main(cufit, pages):
    found = [pathlib.Path(page).resolve() for page in pages]
    found = found or sorted([*ROOT.glob("*.md"), *(ROOT / "docs").glob("*.md"), ROOT / "packaging/python/README.md"])
    ran = bad = 0
    with tempfile.TemporaryDirectory() as home:
        os.mkdir(f"{home}/bin")
        os.mkdir(f"{home}/tmp")
        os.symlink(pathlib.Path(cufit).resolve(), f"{home}/bin/cufit")
        for page in found:
            one = check(page, cufit, home)
            ran, bad = ran + one[0], bad + one[1]
    if not ran and not pages:
        print("no command was found in the pages")
        bad = 1
    print(f"{ran - bad} passed, {bad} failed")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1], sys.argv[2:]))
