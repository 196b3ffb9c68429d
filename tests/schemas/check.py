#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Checks documents that cufit wrote against docs/schemas/.

check.py FILE...   each file holds one document or several, among other text or not; "-" is stdin. A
file named *.lock is TOML. Exit code 1: a document does not follow its schema, or a file holds none.
"""
import json
import pathlib
import re
import sys
import tomllib
import warnings

try:
    import jsonschema
except ImportError:
    sys.exit("python3-jsonschema is missing: tools/setup installs it")
with warnings.catch_warnings():
    # Deprecated since 4.18; Debian 12 has 4.10, which knows nothing else.
    warnings.simplefilter("ignore", DeprecationWarning)
    from jsonschema import RefResolver

FOLDER = pathlib.Path(__file__).resolve().parents[2] / "docs" / "schemas"
BEGIN = re.compile(r'\{(?=\s*")')
NAMED = re.compile(r'"schema"\s*:\s*"cufit\.')


def file_of(name):
    """Of "cufit.mem.replay/1": "mem.replay-1.json"."""
    return name.removeprefix("cufit.").replace("/", "-") + ".json"


def documents(text):
    """Each JSON object of the text that names a schema of cufit, with its line."""
    if NAMED.search(text) is None:
        return
    decoder, at = json.JSONDecoder(), 0
    while begin := BEGIN.search(text, at):
        at = begin.end()
        try:
            document, end = decoder.raw_decode(text, begin.start())
        except json.JSONDecodeError:  # cut short, with a placeholder in it, or no JSON
            continue
        if str(document.get("schema")).startswith("cufit."):
            at = end
            yield text.count("\n", 0, begin.start()) + 1, document


class Schemas:
    """The schema files; what of them documents have used is kept."""

    def __init__(self, folder=FOLDER):
        self.files = {}
        for path in sorted(folder.glob("*.json")):
            self.files[path.name] = json.loads(path.read_text(encoding="utf-8"))
        self.used = {name: 0 for name in self.files}
        self.seen = set()  # (id of a schema's members or words, one of them) that a document had
        properties = jsonschema.Draft202012Validator.VALIDATORS["properties"]
        enum = jsonschema.Draft202012Validator.VALIDATORS["enum"]

        def noted(validator, members, instance, schema):
            if isinstance(instance, dict):
                self.seen.update((id(members), name) for name in members if name in instance)
            yield from properties(validator, members, instance, schema)

        def noted_word(validator, words, instance, schema):
            self.seen.update((id(words), word) for word in words if word == instance)
            yield from enum(validator, words, instance, schema)

        kind = jsonschema.validators.extend(
            jsonschema.Draft202012Validator, {"properties": noted, "enum": noted_word})
        self.validators = {
            name: kind(schema, resolver=RefResolver(name, schema, store=dict(self.files)))
            for name, schema in self.files.items()}

    def errors(self, document, left_out=()):
        """What is wrong with a document, one line each, at most three; `left_out`: members that it
        may lack."""
        name = file_of(str(document.get("schema")))
        if name not in self.files:
            return [f"no file docs/schemas/{name}"]
        self.used[name] += 1
        found = []
        for error in self.validators[name].iter_errors(document):
            if error.validator == "required" and not error.absolute_path and any(
                    error.message == f"{one!r} is a required property" for one in left_out):
                continue
            error = jsonschema.exceptions.best_match([error])
            place = "/".join(str(part) for part in error.absolute_path) or "the document"
            found.append("{}: {}: {:.200}".format(document["schema"], place, error.message))
        return found[:3]


def main(paths):
    if not paths:
        sys.exit(__doc__)
    schemas, bad = Schemas(), False
    for path in paths:
        text = sys.stdin.read() if path == "-" else pathlib.Path(path).read_text(encoding="utf-8")
        found = [(1, tomllib.loads(text))] if path.endswith(".lock") else list(documents(text))
        if not found:
            print(f"{path}: no document of cufit")
            bad = True
        for line, document in found:
            wrong = schemas.errors(document)
            bad = bad or bool(wrong)
            for error in wrong:
                print(f"{path}:{line}: {error}")
            if not wrong:
                print(f"{path}:{line}: {document['schema']}: ok")
    return 1 if bad else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
