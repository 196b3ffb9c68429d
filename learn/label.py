#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""label.py TABLE.toml --clues LIST-CLUES: writes learn/labels.tsv, what a table learned elsewhere says of our texts.

For a table that was learned from reports whose texts are not kept: its opinions of the texts that are kept go on, and
learn.py learns from them beside the causes that the texts were written for. A line: the text (inputs.name_of), then
PLACE:PERCENT for each cause that the table takes for likely among those of its kind; PLACE counts in the line `causes`.
"""
import argparse
import tomllib

import numpy

import inputs
import learn

LEAST = 0.05   # chances below are left out
OTHER_KIND = 4  # of every so many texts, what the table says of the other kind's causes is kept, too


def pairs(text):
    parts = text.split()
    return dict(zip(parts[0::2], map(int, parts[1::2]), strict=True))


def odds_of(table, cases):
    """By cause, the log-odds of each case, as src/explain/vocabulary.cc reckons them."""
    rarity = pairs(table["rarity"])
    places = {word: place for place, word in enumerate(rarity)}
    matrix = learn.features([case["words"] for case in cases], places, numpy.array(list(rarity.values())) / 100)
    out = {}
    for cause, row in table["cause"].items():
        weights = numpy.zeros(len(places))
        for word, weight in pairs(row["words"]).items():
            weights[places[word]] = weight / table["scale"]
        out[cause] = matrix @ weights + row["bias"]
    return out


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("table")
    parser.add_argument("--clues", required=True)
    options = parser.parse_args()
    with open(options.table, "rb") as file:
        table = tomllib.load(file)["vocabulary"]
    cases, memory, _ = inputs.all_cases(options.clues)
    odds = odds_of(table, cases)
    names = sorted(odds)
    chances = {name: 1 / (1 + numpy.exp(-odds[name])) for name in ("none", "memory")}
    for kind in (False, True):
        causes = [name for name in names if name not in chances and (name in memory) == kind]
        powers = numpy.exp(numpy.array([odds[cause] for cause in causes]))
        chances.update(zip(causes, powers / powers.sum(axis=0), strict=True))
    lines = {}
    for row, case in enumerate(cases):
        name = inputs.name_of(case["text"])
        whole = case["cause"] == "none" or int(name, 16) % OTHER_KIND == 0
        said = [f"{place}:{100 * chances[cause][row]:.0f}" for place, cause in enumerate(names)
                if chances[cause][row] >= LEAST and (cause in ("none", "memory") or whole or (cause in memory) == (case["cause"] in memory))]
        lines[name] = "\t".join([name, *said])
    with open(inputs.ROOT / "learn/labels.tsv", "w", encoding="utf-8") as out:
        out.write(f"# What the table of {table['date']} says of our texts: written by learn/label.py.\n")
        out.write("\t".join(["causes", *names]) + "\n")
        out.write("".join(lines[name] + "\n" for name in sorted(lines)))
    print(f"{len(lines)} texts")


if __name__ == "__main__":
    main()
