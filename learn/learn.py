#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""learn.py --clues LIST-CLUES -o TABLE.toml: learns the word table from files of this repository.

It reads learn/reports.txt, learn/labels.tsv, tests/texts and the texts of data/findings; learn/README.md says what each is.
The model is multinomial logistic regression over the words that a text holds (src/explain/vocabulary.h defines a word)
and over the clues that it gives (LIST-CLUES names them). Causes of running out of memory are weighed against each other,
all other causes against each other. Two questions of yes and no stand beside them: `memory` (which of both kinds) and
`none` (whether the text needs no answer). Nothing is drawn at random, and one thread does the arithmetic: two runs give
the same bytes.
"""
import argparse
import os
import textwrap

for threads in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ[threads] = "1"  # sums in one order; counts at import

import numpy  # noqa: E402
import scipy.optimize  # noqa: E402
import scipy.sparse  # noqa: E402

import inputs  # noqa: E402

LEAST_TEXTS = 2     # a word that one text holds says nothing about others
KEPT = 500          # words per cause
KEPT_MEMORY = 1000  # per cause of running out of memory
SCALE = 8           # weights are stored as eighths
STRENGTH = 100.0    # inverse of the regularisation
DATE = "2026-11-27"  # when the inputs were last changed by hand
CLUES = 0.5         # length of what the clues say, beside 1 of the words
TOLD = 0.5          # share of what learn/labels.tsv says of a text, beside its own cause
WHOLE = 4.0         # how much a text of tests/texts counts: a judged paste, no line written for this
OTHERS = 0.3        # how much a text of the other kind counts, of which only learn/labels.tsv says something


def rarities(wordsets):
    """Words that enough texts hold, sorted, and log(1 + texts / texts with the word), as the table stores it."""
    counts = {}
    for words in wordsets:
        for word in words:
            counts[word] = counts.get(word, 0) + 1
    words = sorted(word for word in counts if counts[word] >= LEAST_TEXTS)
    seen = numpy.array([counts[word] for word in words])
    return words, numpy.round(numpy.log(1 + len(wordsets) / seen) * 100) / 100


def features(wordsets, places, rarity):
    """A row for each text: the rarities of its words scaled to length 1, those of its clues to CLUES."""
    rows, columns, values = [], [], []
    for row, words in enumerate(wordsets):
        for clues, length in ((False, 1.0), (True, CLUES)):
            known = [places[word] for word in sorted(words) if word in places and (word[0] == "@") == clues]
            if known:
                rows += [row] * len(known)
                columns += known
                values += list(rarity[known] * length / numpy.linalg.norm(rarity[known]))
    return scipy.sparse.csr_matrix((values, (rows, columns)), shape=(len(wordsets), len(places)))


def softmax_regression(matrix, targets, importance):
    """(weights by cause and word, bias) of the causes whose shares in each text are `targets`."""
    causes = targets.shape[1]
    across = matrix.T.tocsr()

    def price(flat):
        weights = flat.reshape(matrix.shape[1] + 1, causes)
        odds = matrix @ weights[:-1] + weights[-1]
        odds -= odds.max(axis=1, keepdims=True)
        chances = numpy.exp(odds)
        total = chances.sum(axis=1, keepdims=True)
        loss = -(importance[:, None] * targets * (odds - numpy.log(total))).sum()
        slope = importance[:, None] * (chances / total - targets)
        gradient = numpy.vstack([across @ slope + weights[:-1] / STRENGTH, slope.sum(axis=0)])
        return loss + (weights[:-1] ** 2).sum() / (2 * STRENGTH), gradient.ravel()

    start = numpy.zeros((matrix.shape[1] + 1) * causes)
    found = scipy.optimize.minimize(price, start, jac=True, method="L-BFGS-B",
                                    options={"maxiter": 2000, "maxfun": 4000, "ftol": 1e-8, "gtol": 1e-3})
    weights = found.x.reshape(matrix.shape[1] + 1, causes)
    return weights[:-1].T, weights[-1]


def answer_to(matrix, own, shares, counted):
    """(weights by word, bias) of a question of yes and no; `own`: the answer of each text, of which yes and no count the same in sum; `counted`: how much each text counts."""
    importance = counted * numpy.where(own > 0, 0.5 / (counted * own).sum(), 0.5 / (counted * (1 - own)).sum()) * len(own)
    weights, bias = softmax_regression(matrix, numpy.stack([1 - shares, shares], axis=1), importance)
    return weights[1:] - weights[:1], bias[1] - bias[0]


def pruned(weights, kept):
    """The heaviest `kept` of each cause, rounded as they are stored."""
    out = weights.copy()
    for row in out:
        row[numpy.abs(row) < numpy.sort(numpy.abs(row))[-min(kept, len(row))]] = 0
    return numpy.round(out * SCALE).astype(int)


def told(path):
    """learn/labels.tsv: by text, {"none": chance, "memory": chance, cause: chance among its kind}."""
    out = {}
    if path.exists():
        names = []
        for line in path.read_text(encoding="utf-8").splitlines():
            name, *values = line.split("\t")
            if name == "causes":
                names = values
            elif not line.startswith("#"):
                out[name] = {names[int(place)]: int(percent) / 100 for place, percent in (value.split(":") for value in values)}
    return out


def targets(cases, labels, causes):
    """Which texts say something of these causes, the shares of each, and how much the text counts."""
    rows, shares, importance = [], [], []
    for row, case in enumerate(cases):
        label = labels.get(inputs.name_of(case["text"]), {})
        by_label = numpy.array([label.get(cause, 0.0) for cause in causes])
        own = numpy.array([float(case["cause"] == cause) for cause in causes])
        if by_label.sum() == 0 and own.sum() == 0:
            continue
        if by_label.sum() > 0:
            share = TOLD if own.sum() > 0 else 1.0
            own = (1 - share) * own + share * by_label / by_label.sum()
        rows.append(row)
        shares.append(own)
        importance.append((WHOLE if case["whole"] else 1.0) if case["cause"] in causes else OTHERS)
    return rows, numpy.array(shares), numpy.array(importance)


def new_clue(words, rarity, rows, asked):
    """(rarity, weight) of a clue that is no word yet: what known ones count, on average, for the causes whose signs ask for them."""
    weights = [row[place] for cause, _, row in rows for place, word in enumerate(words) if (cause, word) in asked]
    clues = [place for place, word in enumerate(words) if word[0] == "@"]
    return numpy.median(rarity[clues]), max(1, round(float(numpy.mean(weights))))


def learn(cases, memory, labels):
    """words, their rarity, and (cause, bias, weights by word)."""
    words, rarity = rarities([case["words"] for case in cases])
    matrix = features([case["words"] for case in cases], {word: place for place, word in enumerate(words)}, rarity)
    rows = []
    for kind, kept in ((False, KEPT), (True, KEPT_MEMORY)):
        causes = sorted({case["cause"] for case in cases if case["cause"] != "none" and (case["cause"] in memory) == kind})
        used, shares, importance = targets(cases, labels, causes)
        weights, bias = softmax_regression(matrix[used], shares, importance)
        rows += zip(causes, bias, pruned(weights, kept), strict=True)
    for question, causes in (("memory", memory), ("none", {"none"})):
        used = [row for row, case in enumerate(cases) if question == "none" or case["cause"] != "none"]
        own = numpy.array([float(cases[row]["cause"] in causes) for row in used])
        said = [labels.get(inputs.name_of(cases[row]["text"])) for row in used]
        shares = [own_yes if label is None else (1 - TOLD) * own_yes + TOLD * label.get(question, 0.0)
                  for own_yes, label in zip(own, said, strict=True)]
        counted = numpy.array([WHOLE if cases[row]["whole"] else 1.0 for row in used])
        weights, bias = answer_to(matrix[used], own, numpy.array(shares), counted)
        rows.append((question, bias, pruned(weights, KEPT)[0]))
    return words, rarity, rows


def wrapped(pairs):
    text = " ".join(f"{word} {value}" for word, value in pairs)
    return "\n".join(textwrap.wrap(text, 140, break_long_words=False, break_on_hyphens=False))


def write(path, count, memory, words, rarity, rows):
    with open(path, "w", encoding="utf-8") as out:
        out.write("# Which words and clues (@) speak for which cause: written by `make learn`, not by hand. Most telling first; weights are\n"
                  "# log-odds times `scale`. `none`: that a text needs no answer, `memory`: that it ran out of memory. `rarity`: 100 log(1 + texts /\n"
                  "# texts with the word). `@` alone: what a clue that is no word counts for each cause whose signs ask for it.\n\n")
        out.write("[vocabulary]\n")
        out.write(f'source = "logistic regression over the {count} texts of learn/reports.txt, tests/texts and data/findings, beside learn/labels.tsv"\n')
        out.write(f"date = {DATE}\nscale = {SCALE}\nclue_length = {CLUES}\n")
        out.write(f"rarity = '''\n{wrapped([(w, int(round(r * 100))) for w, r in zip(words, rarity)])}\n'''\n")
        for cause, bias, row in rows:
            order = sorted((place for place in range(len(words)) if row[place]), key=lambda place: (-row[place], words[place]))
            out.write(f"\n[vocabulary.cause.{cause}]\nbias = {bias:.3f}\n" + ("memory = true\n" if cause in memory else ""))
            out.write(f"words = '''\n{wrapped([(words[place], row[place]) for place in order])}\n'''\n")


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--clues", required=True)
    parser.add_argument("-o", required=True)
    options = parser.parse_args()
    cases, memory, asked = inputs.all_cases(options.clues)
    words, rarity, rows = learn(cases, memory, told(inputs.ROOT / "learn/labels.tsv"))
    any_rarity, any_weight = new_clue(words, rarity, rows, asked)
    words, rarity = ["@", *words], numpy.insert(rarity, 0, any_rarity)
    rows = [(cause, bias, numpy.insert(row, 0, 0 if cause in ("memory", "none") else any_weight)) for cause, bias, row in rows]
    write(options.o, len(cases), memory, words, rarity, rows)
    print(f"{len(cases)} texts, {len(words)} words, {sum(int((row != 0).sum()) for _, _, row in rows)} weights, {len(rows)} causes")


if __name__ == "__main__":
    main()
