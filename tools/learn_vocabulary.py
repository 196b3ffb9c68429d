#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/learn_vocabulary.py CASES.jsonl... --clues build/tools/list-clues [--texts DIR] [--taxonomy FILE.yaml] [--memory FILE.yaml] [--written FILE.txt] -o data/vocabulary.toml

Learns which words and clues speak for which cause, from labelled reports: one JSON object per line with `evidence` (the text) and
`root_cause` (an id, or "none" for a text that must get no answer), perhaps `also_acceptable` (ids that a fair judge would take, too), from tests/texts (DIR/<id>/*.txt, DIR/no_cause/*.txt),
from the definitions in the taxonomies, and from short reports written for it (data/vocabulary_reports.txt). The model
is multinomial logistic regression over the words that a text holds (see src/explain/vocabulary.h) and over the clues that it gives
(LIST-CLUES names them), the lightest weights dropped and the rest rounded. The causes of the taxonomy --memory are weighed against each other, all others
against each other; which of both kinds, and "none" (a text that needs no answer), are questions of their own.
To the regression's weights for causes of running out of memory those of naive Bayes are added: with a few dozen texts a cause
the two err on different reports (cross-validated on 445: first 82 % by the one, 84 % by the sum).
Needs scikit-learn and PyYAML; the build needs neither, only the table.
"""
import argparse
import datetime
import json
import pathlib
import re
import subprocess
import textwrap

import numpy
import scipy.sparse
import yaml
from sklearn.linear_model import LogisticRegression

LEAST_TEXTS = 2     # a word that one text holds says nothing about others
KEPT = 500          # words per cause
KEPT_MEMORY = 1000  # per cause of running out of memory
SCALE = 8           # weights are stored as eighths
STRENGTH = 20.0     # inverse of the regularisation
CLUES = 0.5         # length of what the clues say, beside 1 of the words
PRIOR = 0.1         # naive Bayes counts each word as so often seen with each cause beside what it saw
ALSO = 0.15         # share of a report that counts for the other ids that its judge would take


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


def written(path):
    """(cause, text) of data/vocabulary_reports.txt."""
    out, cause = [], None
    for line in pathlib.Path(path).read_text(encoding="utf-8").splitlines():
        heading = re.fullmatch(r"\[(\w+)\]", line)
        if heading:
            cause = heading[1]
        elif line and cause:
            out.append((cause, line.replace("|", "\n")))
    return out


def clues_of(program, texts):
    """What each text says, by the names of data/clues, as words with an @."""
    lines = "".join(json.dumps({"evidence": text}) + "\n" for text in texts)
    done = subprocess.run([program], input=lines.encode(), stdout=subprocess.PIPE, check=True)
    return [{"@" + name for name in line.split()} for line in done.stdout.decode().split("\n")[:-1]]


def features(texts, places, idf):
    """A row for each text: the rarities of its words scaled to length 1, those of its clues to CLUES."""
    rows, columns, values = [], [], []
    for row, words in enumerate(texts):
        for clues, length in ((False, 1.0), (True, CLUES)):
            known = [places[word] for word in sorted(words) if word in places and (word[0] == "@") == clues]
            if known:
                rows += [row] * len(known)
                columns += known
                values += list(idf[known] * length / numpy.linalg.norm(idf[known]))
    return scipy.sparse.csr_matrix((values, (rows, columns)), shape=(len(texts), len(places)))


def pruned(weights, kept=KEPT):
    out = weights.copy()
    for row in out:
        row[numpy.abs(row) < numpy.sort(numpy.abs(row))[-min(kept, len(row))]] = 0
    return numpy.round(out * SCALE).astype(int)


def shares(cases):
    """(case, cause, its share) of each cause that a judge would take."""
    known = {case["root_cause"] for case in cases}
    out = []
    for row, case in enumerate(cases):
        others = [cause for cause in case["also_acceptable"] if cause in known and cause != case["root_cause"]]
        out.append((row, case["root_cause"], 1 - ALSO if others else 1))
        out += [(row, cause, ALSO / len(others)) for cause in others]
    return out


def log_shares(counts):
    return numpy.log((counts + PRIOR) / (counts + PRIOR).sum(axis=1, keepdims=True))


def bayes(matrix, cases, causes):
    """Naive Bayes: the logarithm of a word's share in a cause's texts over its share in all others'."""
    weights = numpy.zeros((len(causes), len(cases)))
    for row, cause, share in shares(cases):
        weights[causes.index(cause), row] = share
    known = (matrix > 0).sum(axis=0).A1 >= LEAST_TEXTS  # among these, not among all
    counts = (matrix[:, known].T @ weights.T).T
    out = numpy.zeros((len(causes), matrix.shape[1]))
    out[:, known] = log_shares(counts) - log_shares(counts.sum(axis=0, keepdims=True) - counts)
    return out


def fitted(matrix, cases, memory):
    """(cause, bias, weights) of the causes of these cases, against each other."""
    rows, labels, weights = zip(*shares(cases))
    model = LogisticRegression(C=STRENGTH, max_iter=4000).fit(matrix[list(rows)], labels, sample_weight=weights)
    words = model.coef_
    if memory:
        words = words + bayes(matrix, cases, list(model.classes_))
    return list(zip(model.classes_, model.intercept_, pruned(words, KEPT_MEMORY if memory else KEPT)))


def asked(question, matrix, answers, **options):
    model = LogisticRegression(C=STRENGTH, max_iter=4000, **options).fit(matrix, answers)
    return (question, model.intercept_[0], pruned(model.coef_)[0])


def learn(cases, memory):
    """words, their rarity, and (cause, bias, weights by word); `memory`: ids of causes of running out of memory."""
    counts = {}
    for case in cases:
        for word in case["words"]:
            counts[word] = counts.get(word, 0) + 1
    words = sorted(word for word in counts if counts[word] >= LEAST_TEXTS)
    idf = numpy.round(numpy.log(1 + len(cases) / numpy.array([counts[word] for word in words])) * 100) / 100
    matrix = features([case["words"] for case in cases], {word: place for place, word in enumerate(words)}, idf)
    failing = numpy.array([case["root_cause"] != "none" for case in cases])
    of_memory = numpy.array([case["root_cause"] in memory for case in cases])
    rows = []
    for kind in (failing & ~of_memory, of_memory):
        if kind.any():
            rows += fitted(matrix[kind], [case for case, chosen in zip(cases, kind) if chosen], kind is of_memory)
    if of_memory.any():
        # Only real reports: how many of either kind were written says nothing.
        real = failing & numpy.array([not case.get("written") for case in cases])
        rows.append(asked("memory", matrix[real], of_memory[real], class_weight="balanced"))
    if not failing.all():
        rows.append(asked("none", matrix, ~failing, class_weight="balanced"))
    return words, idf, rows


def wrapped(pairs):
    text = " ".join(f"{word} {value}" for word, value in pairs)
    return "\n".join(textwrap.wrap(text, 140, break_long_words=False, break_on_hyphens=False))


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--taxonomy", action="append", default=[])
    parser.add_argument("--memory")
    parser.add_argument("--clues", required=True)
    parser.add_argument("--texts")
    parser.add_argument("--written")
    parser.add_argument("-o", required=True)
    options = parser.parse_args()
    cases = []
    for path in options.cases:
        with open(path, encoding="utf-8") as file:
            cases += [{"also_acceptable": [], **case} for case in map(json.loads, file)]
    for path in sorted(pathlib.Path(options.texts).glob("*/*.txt")) if options.texts else []:
        data = path.read_bytes()
        text = data.decode("utf-16" if data[:2] in (b"\xff\xfe", b"\xfe\xff") else "utf-8", "replace")
        text = re.sub(r"\x1b\[[0-9;]*[A-Za-z]", "", text).replace("\r", "\n")
        cause = "none" if path.parent.name == "no_cause" else path.parent.name
        cases.append({"root_cause": cause, "also_acceptable": [], "evidence": text})
    count = len(cases)
    memory = set()
    for path in options.taxonomy + ([options.memory] if options.memory else []):
        for cause, text in definitions(path):
            cases.append({"root_cause": cause, "also_acceptable": [], "evidence": text})
            if path == options.memory:
                memory.add(cause)
    for cause, text in written(options.written) if options.written else []:
        cases.append({"root_cause": cause, "also_acceptable": [], "evidence": text, "written": True})
    for case, clues in zip(cases, clues_of(options.clues, [case["evidence"] for case in cases])):
        case["words"] = words_of(case["evidence"]) | clues
    words, idf, rows = learn(cases, memory)
    with open(options.o, "w", encoding="utf-8") as out:
        out.write("# Which words and clues (@) speak for which cause: written by tools/learn_vocabulary.py, not by hand. Most telling first;\n"
                  "# weights are eighths of log-odds. `none`: that a text needs no answer, `memory`: that it ran out of memory. `rarity`: 100 log(1 + texts / texts with the word).\n\n")
        out.write("[vocabulary]\n")
        out.write(f'source = "logistic regression over {count} labelled failure reports, most of them restated from public '
                  'issue threads and forums, over the definitions of the causes and over reports written from them"\n')
        out.write(f"date = {datetime.date.today()}\n")
        out.write(f"scale = {SCALE}\nclue_length = {CLUES}\n")
        out.write(f"rarity = '''\n{wrapped([(w, int(round(r * 100))) for w, r in zip(words, idf)])}\n'''\n")
        for cause, bias, row in rows:
            order = sorted((place for place in range(len(words)) if row[place]), key=lambda place: (-row[place], words[place]))
            out.write(f"\n[vocabulary.cause.{cause}]\nbias = {bias:.3f}\n" + ("memory = true\n" if cause in memory else ""))
            out.write(f"words = '''\n{wrapped([(words[place], row[place]) for place in order])}\n'''\n")
    print(f"{count} reports, {len(words)} words, {sum(int((row != 0).sum()) for _, _, row in rows)} weights, {len(rows)} causes")


if __name__ == "__main__":
    main()
