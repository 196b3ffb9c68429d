#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/learn_vocabulary.py CASES.jsonl... [--texts DIR] [--taxonomy FILE.yaml]... -o data/vocabulary.toml

Learns which words speak for which cause, from labelled reports: one JSON object per line with `evidence` (the text) and
`root_cause` (an id, or "none" for a text that must get no answer), from tests/texts (DIR/<id>/*.txt, DIR/no_cause/*.txt),
and from the definitions in the taxonomies. The model
is multinomial logistic regression over the words that a text holds (see src/explain/vocabulary.h), the lightest weights
dropped and the rest rounded; "none" is a question of its own, against all causes together. Needs scikit-learn and PyYAML; the build needs neither, only the table.
"""
import argparse
import datetime
import json
import pathlib
import re
import textwrap

import numpy
import yaml
from sklearn.linear_model import LogisticRegression

LEAST_TEXTS = 2     # a word that one text holds says nothing about others
KEPT = 150          # words per cause
SCALE = 8           # weights are stored as eighths
STRENGTH = 30.0     # inverse of the regularisation


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


def definitions(path):
    found = []

    def walk(node):
        if isinstance(node, dict):
            if "id" in node and "definition" in node:
                found.append((node["id"], json.dumps(node, ensure_ascii=False)))
            for value in node.values():
                walk(value)
        elif isinstance(node, list):
            for value in node:
                walk(value)

    with open(path, encoding="utf-8") as file:
        walk(yaml.safe_load(file))
    return found


def features(texts, places, idf):
    out = numpy.zeros((len(texts), len(places)))
    for row, words in enumerate(texts):
        for word in words:
            if word in places:
                out[row, places[word]] = idf[places[word]]
    return out / numpy.maximum(numpy.linalg.norm(out, axis=1, keepdims=True), 1e-9)


def pruned(weights):
    out = weights.copy()
    for row in out:
        row[numpy.abs(row) < numpy.sort(numpy.abs(row))[-KEPT]] = 0
    return numpy.round(out * SCALE).astype(int)


def learn(pairs):
    """words, their rarity, and (cause, bias, weights by word) of (id, text) pairs; "none" against all others."""
    texts = [words_of(text) for _, text in pairs]
    counts = {}
    for words in texts:
        for word in words:
            counts[word] = counts.get(word, 0) + 1
    words = sorted(word for word in counts if counts[word] >= LEAST_TEXTS)
    idf = numpy.round(numpy.log(1 + len(texts) / numpy.array([counts[word] for word in words])) * 100) / 100
    matrix = features(texts, {word: place for place, word in enumerate(words)}, idf)
    labels = numpy.array([cause for cause, _ in pairs])
    failing = labels != "none"
    model = LogisticRegression(C=STRENGTH, max_iter=4000).fit(matrix[failing], labels[failing])
    rows = list(zip(model.classes_, model.intercept_, pruned(model.coef_)))
    if not failing.all():
        model = LogisticRegression(C=STRENGTH, max_iter=4000, class_weight="balanced").fit(matrix, ~failing)
        rows.append(("none", model.intercept_[0], pruned(model.coef_)[0]))
    return words, idf, rows


def wrapped(pairs):
    text = " ".join(f"{word} {value}" for word, value in pairs)
    return "\n".join(textwrap.wrap(text, 140, break_long_words=False, break_on_hyphens=False))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--taxonomy", action="append", default=[])
    parser.add_argument("--texts")
    parser.add_argument("-o", required=True)
    options = parser.parse_args()
    pairs = []
    for path in options.cases:
        with open(path, encoding="utf-8") as file:
            pairs += [(case["root_cause"], case["evidence"]) for case in map(json.loads, file)]
    for path in sorted(pathlib.Path(options.texts).glob("*/*.txt")) if options.texts else []:
        data = path.read_bytes()
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8", "replace")
        text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).replace("\r", "\n")
        pairs.append(("none" if path.parent.name == "no_cause" else path.parent.name, text))
    count = len(pairs)
    for path in options.taxonomy:
        pairs += definitions(path)
    words, idf, rows = learn(pairs)
    with open(options.o, "w", encoding="utf-8") as out:
        out.write("# Which words speak for which cause: written by tools/learn_vocabulary.py, not by hand. Words most telling first;\n"
                  "# weights are eighths of log-odds. `none`: that a text needs no answer, against all causes. `rarity`: 100 log(1 + texts / texts with the word).\n\n")
        out.write("[vocabulary]\n")
        out.write(f'source = "logistic regression over {count} labelled failure reports, most of them restated from public '
                  'issue threads and forums, and over the definitions of the causes"\n')
        out.write(f"date = {datetime.date.today()}\n")
        out.write(f"scale = {SCALE}\nrarity = '''\n{wrapped([(w, int(round(r * 100))) for w, r in zip(words, idf)])}\n'''\n")
        for cause, bias, row in rows:
            order = sorted((place for place in range(len(words)) if row[place]), key=lambda place: (-row[place], words[place]))
            out.write(f"\n[vocabulary.cause.{cause}]\nbias = {bias:.3f}\n")
            out.write(f"words = '''\n{wrapped([(words[place], row[place]) for place in order])}\n'''\n")
    print(f"{count} reports, {len(words)} words, {sum(int((row != 0).sum()) for _, _, row in rows)} weights, {len(rows)} causes")


if __name__ == "__main__":
    main()
