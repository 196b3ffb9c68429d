# SPDX-License-Identifier: Apache-2.0
"""What is learned from: the reports, texts and definitions of this repository, and their words and clues."""
import hashlib
import json
import pathlib
import re
import subprocess
import tomllib

ROOT = pathlib.Path(__file__).resolve().parent.parent
# Layers of data/findings whose causes are such of running out of memory.
MEMORY_LAYERS = {"allocator", "bug", "capacity", "distributed", "growth", "host", "outside", "platform", "quota", "serving"}


def words_of(text):
    """The same words as src/explain/vocabulary.cc."""
    out = set()
    text = re.sub(r"https?://[^\x00-\x20]*", " ", text.lower())
    text = re.sub(r"tried to allocate[^\n]*", " ", text)
    for run in re.findall(r"[a-z0-9_.]+", text):
        word = run.lstrip("0123456789.").strip("._")
        if len(word) >= 2:
            out.add(word)
        for part in re.split(r"[._]", word):
            if len(part) >= 3:
                out.add(part)
    out.update(re.findall(r"[\u4e00-\u9fff]", text))
    return {word for word in out if len(word) <= 40 and re.search(r"[a-z\u4e00-\u9fff]", word)}


def written_reports(path):
    """(cause, text) of learn/reports.txt."""
    out, cause = [], None
    for line in path.read_text(encoding="utf-8").splitlines():
        heading = re.fullmatch(r"\[(\w+)\]", line)
        if heading:
            cause = heading[1]
        elif line and cause:
            out.append((cause, line.replace("|", "\n")))
    return out


def whole_texts(folder):
    """(cause, text) of tests/texts."""
    out = []
    for path in sorted(folder.glob("*/*.txt")):
        data = path.read_bytes()
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8", "replace")
        text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).replace("\r", "\n")
        out.append(("none" if path.parent.name == "no_cause" else path.parent.name, text))
    return out


def findings(folder):
    out = []
    for path in sorted(folder.glob("*.toml")):
        with open(path, "rb") as file:
            out.append(tomllib.load(file))
    return [finding for finding in out if "decide" in finding["en"]]


def definitions(found):
    """(cause, text) of the causes in data/findings, both languages."""
    return [(finding["id"], "\n".join(finding[language][key] for key in ("title", "why.text", "rule", "decide")
                                      if key in finding[language]))
            for finding in found for language in ("en", "zh")]


def name_of(text):
    """Of a text in learn/labels.tsv."""
    return hashlib.sha256(text.encode()).hexdigest()[:12]


def clues_of(program, texts):
    """What each text says, by the names of data/clues, as words with an @."""
    lines = "".join(json.dumps({"evidence": text}) + "\n" for text in texts)
    done = subprocess.run([program], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    return [{"@" + name for name in line.split()} for line in done.stdout.decode().split("\n")[:-1]]




def all_cases(program):
    """Every text to learn from as {cause, text, words, whole: of tests/texts}; the causes of running out of memory; (cause, clue) where a sign asks for it."""
    found = findings(ROOT / "data/findings")
    whole = whole_texts(ROOT / "tests/texts")
    texts = whole + written_reports(ROOT / "learn/reports.txt") + definitions(found)
    known = {finding["id"] for finding in found} | {"none"}
    unknown = sorted({cause for cause, _ in texts} - known)
    if unknown:
        raise SystemExit(f"learn: no cause of data/findings: {', '.join(unknown)}")
    cases = [{"cause": cause, "text": text, "words": words_of(text) | clues, "whole": row < len(whole)}
             for row, ((cause, text), clues) in enumerate(zip(texts, clues_of(program, [text for _, text in texts]), strict=True))]
    asked = {(finding["id"], "@" + clue) for finding in found for sign in finding.get("sign", []) for clue in sign.get("with", [])
             if clue[0] != "!"}
    return cases, {finding["id"] for finding in found if finding["layer"] in MEMORY_LAYERS}, asked
