#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""tools/continue_vocabulary.py TABLE.toml CASES.jsonl... --clues build/list-clues [--strength X] -o TABLE.toml

Learns from more reports where those that the table was learned from are not at hand (only their addresses are kept,
data/vocabulary_sources.tsv). Cases as in tools/learn_vocabulary.py; only causes of running out of memory are learned, against
each other: what each word and clue says is moved as little as it takes to explain the new reports (multinomial logistic
regression that starts from the table's weights, the square of the change is what it costs). A change lies in the span of the new
reports, so one number a report and cause is sought, whatever the count of words. Words that two of the new reports hold and the
table does not know are added. Other questions of the table (`none`, `memory`, causes of other kinds) stay as they are.
Needs numpy and scipy; the build needs neither, only the table.
"""
import argparse
import datetime
import json
import re
import tomllib

import numpy
from scipy.optimize import minimize

from learn_vocabulary import ALSO, KEPT_MEMORY, LEAST_TEXTS, clues_of, words_of, wrapped

SCALE = 32       # the weights are stored as such parts: finer than those of a first learning, the changes are small
STRENGTH = 0.003  # price of a change; of 0.0003 to 0.1 the best in cross-validation over 102 new reports


def pairs(text):
    parts = text.split()
    return dict(zip(parts[0::2], map(int, parts[1::2])))


def rows_of(cases, places, rarity, length):
    out = numpy.zeros((len(cases), len(places)))
    for row, case in enumerate(cases):
        for clues, norm in ((False, 1.0), (True, length)):
            known = [places[word] for word in sorted(case["words"]) if word in places and (word[0] == "@") == clues]
            if known:
                out[row, known] = rarity[known] * norm / numpy.linalg.norm(rarity[known])
    return out


def targets(cases, causes):
    out = numpy.zeros((len(cases), len(causes)))
    for row, case in enumerate(cases):
        others = [cause for cause in case["also_acceptable"] if cause in causes and cause != case["root_cause"]]
        out[row, causes.index(case["root_cause"])] = 1 - ALSO if others else 1
        for cause in others:
            out[row, causes.index(cause)] = ALSO / len(others)
    return out


def change(matrix, odds, wanted, strength):
    """What to add to the weights (cause by word)."""
    alike = matrix @ matrix.T

    def price(flat):
        share = flat.reshape(odds.shape)
        moved = alike @ share
        now = odds + moved
        now = now - now.max(axis=1, keepdims=True)
        chances = numpy.exp(now)
        total = chances.sum(axis=1, keepdims=True)
        loss = -(wanted * (now - numpy.log(total))).sum() + strength / 2 * (share * moved).sum()
        return loss, (alike @ (chances / total - wanted + strength * share)).ravel()

    found = minimize(price, numpy.zeros(odds.size), jac=True, method="L-BFGS-B", options={"maxiter": 200})
    return found.x.reshape(odds.shape).T @ matrix


def pruned(weights, kept):
    out = weights.copy()
    for row in out:
        row[numpy.abs(row) < numpy.sort(numpy.abs(row))[-min(kept, len(row))]] = 0
    return numpy.round(out * SCALE).astype(int)


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("cases", nargs="+")
    parser.add_argument("--clues", required=True)
    parser.add_argument("--strength", type=float, default=STRENGTH)
    parser.add_argument("-o", required=True)
    options = parser.parse_args()
    with open(options.table, "rb") as file:
        table = tomllib.load(file)["vocabulary"]
    causes = [cause for cause, row in table["cause"].items() if row.get("memory")]
    cases = []
    for path in options.cases:
        with open(path, encoding="utf-8") as file:
            cases += [{"also_acceptable": [], **case} for case in map(json.loads, file)]
    cases = [case for case in cases if case["root_cause"] in causes]
    for case, clues in zip(cases, clues_of(options.clues, [case["evidence"] for case in cases])):
        case["words"] = words_of(case["evidence"]) | clues
    rarity = pairs(table["rarity"])
    counts = {}
    for case in cases:
        for word in case["words"] - set(rarity):
            counts[word] = counts.get(word, 0) + 1
    learned = int(re.search(r"(\d+) labelled", table["source"])[1])
    for word, count in counts.items():
        if count >= LEAST_TEXTS:
            rarity[word] = int(round(100 * numpy.log(1 + (learned + len(cases)) / count)))
    words = sorted(rarity)
    places = {word: place for place, word in enumerate(words)}
    matrix = rows_of(cases, places, numpy.array([rarity[word] / 100 for word in words]), table["clue_length"])
    weights = {}
    for cause, row in table["cause"].items():
        weights[cause] = numpy.zeros(len(words))
        for word, value in pairs(row["words"]).items():
            weights[cause][places[word]] = value / table["scale"]
    old = numpy.array([weights[cause] for cause in causes])
    odds = matrix @ old.T + numpy.array([table["cause"][cause]["bias"] for cause in causes])
    new = pruned(old + change(matrix, odds, targets(cases, causes), options.strength), KEPT_MEMORY)
    for cause, row in weights.items():
        weights[cause] = new[causes.index(cause)] if cause in causes else numpy.round(row * SCALE).astype(int)
    with open(options.table, encoding="utf-8") as file:
        head = "".join(line for line in file if line.startswith("#"))
    with open(options.o, "w", encoding="utf-8") as out:
        head = re.sub(r"weights are \w+ of log-odds", "weights are log-odds times `scale`", head)
        head = re.sub(r"learn_vocabulary\.py,(?! continued)", "learn_vocabulary.py, continued by tools/continue_vocabulary.py,", head)
        out.write(head + "\n[vocabulary]\n")
        source = re.sub(r"\d+ labelled", f"{learned + len(cases)} labelled", table["source"], count=1)
        out.write(f'source = "{source}"\ndate = {datetime.date.today()}\n')
        out.write(f"scale = {SCALE}\nclue_length = {table['clue_length']}\n")
        out.write(f"rarity = '''\n{wrapped([(word, rarity[word]) for word in words])}\n'''\n")
        for cause, row in weights.items():
            order = sorted((place for place in range(len(words)) if row[place]), key=lambda place: (-row[place], words[place]))
            out.write(f"\n[vocabulary.cause.{cause}]\nbias = {table['cause'][cause]['bias']:.3f}\n"
                      + ("memory = true\n" if cause in causes else ""))
            out.write(f"words = '''\n{wrapped([(words[place], row[place]) for place in order])}\n'''\n")
    print(f"{len(cases)} reports, {len(words)} words, {sum(int((row != 0).sum()) for row in weights.values())} weights")


if __name__ == "__main__":
    main()
