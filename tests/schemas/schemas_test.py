# SPDX-License-Identifier: Apache-2.0
"""The JSON schemas of docs/schemas/ against the source, the goldens and the program.

schemas_test.py PROGRAM [--only TEXT] [--unseen]   --only: the runs whose name holds TEXT;
--unseen: also lists the members and the words of enums that no document had.
"""
import concurrent.futures
import copy
import json
import os
import pathlib
import re
import subprocess
import sys
import tempfile
import time
import tomllib

import jsonschema
from check import FOLDER, Schemas, documents, file_of
from runs import RUNS

ROOT = FOLDER.parents[1]
# Caches that cufit alone reads: their form is no promise.
PRIVATE = {"cufit.gpu-answers/1", "cufit.index/1"}
# Members that goldens leave out: one differs from build to build, one is long. The runs have them.
LEFT_OUT = ("cufit", "facts")

problems = []


def problem(text):
    problems.append(text)
    print("FAILED " + text)


def parts(schema, where):
    """Every subschema with the place where it stands."""
    yield where, schema
    if not isinstance(schema, dict):  # `false`: nothing follows it
        return
    for key in ("properties", "patternProperties", "$defs"):
        for name, part in schema.get(key, {}).items():
            yield from parts(part, f"{where}/{name}")
    for key in ("items", "additionalProperties", "if", "then", "else", "not"):
        if isinstance(schema.get(key), dict):
            yield from parts(schema[key], f"{where}/{key}")
    for key in ("allOf", "anyOf", "oneOf"):
        for part in schema.get(key, []):
            yield from parts(part, f"{where}/{key}")


def check_files(schemas):
    """Each file is a schema, closed, and says what every member means."""
    for name, schema in schemas.files.items():
        try:
            jsonschema.Draft202012Validator.check_schema(schema)
        except jsonschema.SchemaError as error:
            problem(f"docs/schemas/{name} is no valid schema: {error.message}")
            continue
        title = "cufit.{}/".format(name.removesuffix(".json").replace("-", "/"))
        if schema.get("$id") != name or not schema.get("title", "").startswith(title[:-1] + ": "):
            problem(f"docs/schemas/{name}: `$id` or `title` is not of this file")
        for where, part in parts(schema, name):
            if not isinstance(part, dict):
                continue
            closed = "additionalProperties" in part
            if part.get("type") == "object" and not closed and "if" not in part:
                problem(f"docs/schemas/{where}: the object has no `additionalProperties`")
            if closed:  # else it narrows what another part describes
                for member, value in part.get("properties", {}).items():
                    if not str(value.get("description", "")).strip():
                        problem(f"docs/schemas/{where}/{member} has no `description`")


def check_source(schemas):
    """The source names every schema file, and every schema that it names has one."""
    named = set()
    for path in (ROOT / "src").rglob("*"):
        if path.suffix in (".cc", ".h"):
            named.update(re.findall(r'"(cufit\.[a-z0-9_.-]+/[0-9]+)',
                                    path.read_text(encoding="utf-8")))
    for name in sorted(named - PRIVATE):
        if file_of(name) not in schemas.files:
            problem(f"the source writes {name}, and docs/schemas/{file_of(name)} is missing")
    for name in sorted(PRIVATE - named):
        problem(f"the source does not name {name} any more: take it out of this test")
    for name in sorted(set(schemas.files) - {file_of(one) for one in named}):
        problem(f"docs/schemas/{name}: the source names no such schema")


def golden_text(path):
    """Of a case in one file only what it expects: its command may hold damaged documents."""
    text = path.read_text(encoding="utf-8", errors="replace")
    return text[text.find("\n--- stdout"):] if path.suffix == ".test" else text


def check_goldens(schemas):
    count = 0
    for path in sorted((ROOT / "tests").rglob("*")):
        name = path.relative_to(ROOT)
        if path.suffix in (".cc", ".h", ".py", ".sh", ".gz") or path.name == "cmd":
            continue
        if not path.is_file() or path.stat().st_size > 4 << 20:
            continue
        for line, document in documents(golden_text(path)):
            count += 1
            for error in schemas.errors(document, LEFT_OUT):
                problem(f"{name}:{line}: {error}")
    if count == 0:
        problem("no golden with JSON was found below tests/")
    return count


def run(program, script):
    """The documents that a script of runs.py prints, and the locks that it leaves."""
    with tempfile.TemporaryDirectory(prefix="cufit-schemas-") as scratch:
        # The same fixed environment as that of tests/cli.
        done = subprocess.run(
            ["/bin/sh", "-c", script], cwd=ROOT, stdin=subprocess.DEVNULL, capture_output=True,
            timeout=240, check=False,
            env={"CUFIT": program, "TMP": scratch, "PATH": "/usr/bin:/bin", "LANG": "C",
                 "TERM": "xterm", "HOME": scratch})
        found = [document for _, document in documents(done.stdout.decode("utf-8"))]
        for path in sorted(pathlib.Path(scratch).rglob("cufit.lock")):
            lock = tomllib.loads(path.read_text(encoding="utf-8"))
            if "sum" in lock:  # those of tests/run were written by hand
                found.append(lock)
        return found, done.stderr.decode("utf-8", errors="replace")


def check_runs(schemas, program, only, keep):
    count = 0
    wanted = [one for one in RUNS if only in one[0]]
    with concurrent.futures.ThreadPoolExecutor(max_workers=os.cpu_count()) as pool:
        futures = [pool.submit(run, program, script) for _, _, script in wanted]
        for (name, expected, _), future in zip(wanted, futures):
            found, stderr = future.result()
            count += len(found)
            for document in found:
                for error in schemas.errors(document):
                    problem(f"run `{name}`: {error}")
                keep(document["schema"], document)
            for schema in sorted(set(expected) - {document["schema"] for document in found}):
                problem(f"run `{name}` printed no {schema}: {stderr[-300:]}")
    return count


def objects(document):
    if isinstance(document, dict):
        yield document
        for value in document.values():
            yield from objects(value)
    if isinstance(document, list):
        for value in document:
            yield from objects(value)


def check_refusals(schemas, examples):
    """One document of each kind with a foreign member in each of its objects must be refused."""
    for name, document in sorted(examples.items()):
        document = copy.deepcopy(document)
        for number, one in enumerate(list(objects(document))[:200]):
            one["not documented"] = [[]]
            if not schemas.errors(document):
                problem(f"{name}: a foreign member in object {number} ({one!s:.60}) is not seen")
            del one["not documented"]


def list_unseen(schemas):
    """Members and words that no document had: they rest on the source alone."""
    total = unseen = 0
    for name, schema in schemas.files.items():
        for where, part in parts(schema, name):
            if not isinstance(part, dict):
                continue
            for key in ("properties", "enum"):
                known = part.get(key, [])
                if key == "properties" and "additionalProperties" not in part:
                    continue
                left = [str(one) for one in known if (id(known), one) not in schemas.seen]
                total, unseen = total + len(known), unseen + len(left)
                if left:
                    print(f"not seen: {where}: {', '.join(left)}")
    print(f"{unseen} of {total} members and words were in no document")


def main():
    only = sys.argv[sys.argv.index("--only") + 1] if "--only" in sys.argv else ""
    begin = time.monotonic()
    schemas = Schemas()
    examples = {}  # the smallest good document of each kind

    def keep(name, document):
        kept = examples.get(name)
        if file_of(name) in schemas.files and (
                kept is None or len(json.dumps(document)) < len(json.dumps(kept))):
            examples[name] = document

    check_files(schemas)
    if problems:  # nothing can be checked against a file that is no schema
        return 1
    check_source(schemas)
    goldens = check_goldens(schemas)
    ran = check_runs(schemas, os.path.abspath(sys.argv[1]), only, keep)
    if not only:
        for name, count in schemas.used.items():
            if count == 0:
                problem(f"docs/schemas/{name}: no document was checked against it")
    check_refusals(schemas, examples)
    if "--unseen" in sys.argv:
        list_unseen(schemas)
    result = f"{len(problems)} problems" if problems else "ok"
    print(f"{len(schemas.files)} schemas, {goldens} goldens, {ran} documents of {len(RUNS)} runs, "
          f"{time.monotonic() - begin:.1f} s: {result}")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
