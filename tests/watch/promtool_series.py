# SPDX-License-Identifier: Apache-2.0
"""promtool's cases (tests/export/alert_rules_test.yml) as lines for the judge of `cufit watch`.

usage: promtool_series.py CASES.yml
  case NAME
  series METRIC<TAB>label=value<TAB>...<TAB>|<TAB>value value _ ...     one value a minute, from minute 0; `_`: none
  expect MINUTE<TAB>LABEL ...<TAB>ALERT label=value ...<TAB>...         all alerts that fire then, by these labels
"""

import re
import sys

import yaml


def values(text):
    out = []
    for word in text.split():
        if word == "stale":
            out.append("_")
            continue
        if word.startswith("_"):
            out += ["_"] * (int(word[2:]) if word.startswith("_x") else 1)
            continue
        number = r"-?\d+(?:\.\d+)?(?:e\d+)?"
        match = re.fullmatch(rf"({number})([+-]{number})?(?:x(\d+))?", word)
        assert match, word
        first, step, times = float(match[1]), float(match[2] or 0), int(match[3] or 0)
        out += [repr(first + step * i) for i in range(times + 1)]
    return out


def labels(text):
    return re.findall(r'(\w+)="([^"]*)"', text)


def minutes(text):
    assert text.endswith("m"), text
    return int(text[:-1])


for case in yaml.safe_load(open(sys.argv[1]))["tests"]:
    assert case["interval"] == "1m"
    print("case", case["name"])
    for one in case["input_series"]:
        metric, rest = one["series"].split("{", 1)
        shown = ["%s=%s" % pair for pair in labels(rest)]
        print("\t".join(["series " + metric, *shown, "|", " ".join(values(one["values"]))]))
    for one in case["promql_expr_test"]:
        by = re.fullmatch(r'count by \(alertname((?:, \w+)+)\) \(ALERTS\{alertstate="firing"\}\)', one["expr"])
        assert by, one["expr"]
        alerts = []
        for sample in one["exp_samples"]:
            pairs = dict(labels(sample["labels"]))
            name = pairs.pop("alertname")
            alerts.append(name + "".join(" %s=%s" % pair for pair in sorted(pairs.items())))
        shown = " ".join(sorted(by[1].strip(", ").split(", ")))
        print("\t".join(["expect %d" % minutes(one["eval_time"]), shown, *sorted(alerts)]))
