# SPDX-License-Identifier: Apache-2.0
"""What Grafana, Prometheus and compose need of the files that `cufit export` writes for them.

usage: check_monitoring.py board BOARD.json METRICS.toml OUT.rules.yml
       check_monitoring.py compose COMPOSE.yaml FOLDER   writes its embedded files into FOLDER
       check_monitoring.py cases RULES.yml CASES.yml
"""

import json
import pathlib
import re
import sys

import yaml

# Prometheus makes these itself.
OWN = {"ALERTS", "up"}
KINDS = {"row", "stat", "table", "timeseries"}
# Grafana's own variables, as a rule file would not know them.
FILLED = {"$__rate_interval": "5m", "$instance": "a", "$gpu": "0"}
UNITS = {"none", "percentunit", "bytes", "watt", "celsius", "hertz", "Bps", "s"}


def metric_names(path):
    """The names of data/metrics.toml; no tomllib in Python 3.9."""
    return set(re.findall(r'\{name = "(\w+)"', pathlib.Path(path).read_text()))


def overlaps(one, other):
    return (
        one["x"] < other["x"] + other["w"]
        and other["x"] < one["x"] + one["w"]
        and one["y"] < other["y"] + other["h"]
        and other["y"] < one["y"] + one["h"]
    )


def check_source(source):
    assert source == {"type": "prometheus", "uid": "${datasource}"}, source


def check_panel(panel):
    """Yields the expressions of a panel."""
    assert panel["type"] in KINDS and panel["title"], panel
    if panel["type"] == "row":
        assert panel["panels"] == [] and panel["collapsed"] is False
        return
    check_source(panel["datasource"])
    defaults = panel["fieldConfig"]["defaults"]
    assert panel["type"] == "table" or defaults["unit"] in UNITS, panel["title"]
    for one in panel["fieldConfig"]["overrides"]:
        assert one["matcher"]["id"] == "byName", one
        assert [p["id"] for p in one["properties"]] == ["unit"], one
        assert one["properties"][0]["value"] in UNITS, one
    refs = [target["refId"] for target in panel["targets"]]
    assert refs and len(set(refs)) == len(refs), panel["title"]
    for target in panel["targets"]:
        check_source(target["datasource"])
        assert target["instant"] != target["range"]
        assert target["range"] == (panel["type"] == "timeseries"), panel["title"]
        assert (target["format"] == "table") == (panel["type"] == "table"), panel["title"]
        assert "@" not in target["expr"], target
        yield target["expr"]
    if panel["type"] != "table":
        return
    merge, names, order = panel["transformations"]
    assert (merge["id"], names["id"], order["id"]) == ("merge", "filterFieldsByName", "organize")
    chosen = names["options"]["include"]["names"]
    assert sorted(order["options"]["indexByName"].values()) == list(range(len(chosen)))
    assert set(order["options"]["renameByName"]) == set(chosen)
    for name in chosen:  # a column of a query that is not there would be empty
        if name.startswith("Value #"):
            assert name[7:] in refs, (panel["title"], name)


def check_board(board, metrics, rules):
    board = json.loads(pathlib.Path(board).read_text())
    assert "id" not in board and board["uid"] == "cufit" and board["schemaVersion"] >= 36
    variables = {one["name"]: one for one in board["templating"]["list"]}
    assert list(variables) == ["datasource", "instance", "gpu"]
    assert variables["datasource"]["type"] == "datasource"
    for name in ("instance", "gpu"):
        check_source(variables[name]["datasource"])
        assert variables[name]["multi"] and variables[name]["includeAll"]
    panels = board["panels"]
    assert len({panel["id"] for panel in panels}) == len(panels)
    for place, panel in enumerate(panels):
        grid = panel["gridPos"]
        assert 0 <= grid["x"] and grid["x"] + grid["w"] <= 24 and grid["w"] > 0 and grid["h"] > 0
        for other in panels[:place]:
            assert not overlaps(grid, other["gridPos"]), (panel["title"], other["title"])
    expressions = [expr for panel in panels for expr in check_panel(panel)]
    expressions += ["count(%s)" % re.findall(r"label_values\((.*), \w+\)", one["query"]["query"])[0]
                    for one in variables.values() if one["type"] == "query"]
    known, asked = metric_names(metrics), set()
    for expr in expressions:
        asked |= set(re.findall(r"\b(?:cufit_\w+|ALERTS|up)\b", expr))
    assert asked <= known | OWN, asked - known - OWN
    unseen = known - asked
    print("not on the board:", " ".join(sorted(unseen)) or "none")
    # promtool reads no board; as recording rules it parses each expression.
    rows = []
    for number, expr in enumerate(expressions):
        for name, value in FILLED.items():
            expr = expr.replace(name, value)
        assert "$" not in expr, expr
        rows.append({"record": "board:panel_%d" % number, "expr": expr})
    pathlib.Path(rules).write_text(yaml.safe_dump({"groups": [{"name": "board", "rules": rows}]}))


def check_compose(path, folder):
    document = yaml.safe_load(pathlib.Path(path).read_text())
    services, configs = document["services"], document["configs"]
    assert set(services) == {"exporter", "prometheus", "alertmanager", "grafana"}
    for name, service in services.items():
        for port in service["ports"]:
            assert port.startswith("127.0.0.1:"), (name, port)
        for one in service.get("configs", []):
            assert one["source"] in configs, (name, one)
        for one in service["volumes"]:
            if isinstance(one, str):
                assert one.split(":")[0] in document["volumes"], (name, one)
            else:
                assert one["read_only"] is True, (name, one)
        assert not service.get("privileged"), name
    device = services["exporter"]["deploy"]["resources"]["reservations"]["devices"][0]
    assert device["driver"] == "nvidia" and "utility" in device["capabilities"]
    used = {one["source"] for service in services.values() for one in service.get("configs", [])}
    assert used == set(configs), used ^ set(configs)
    # Beside `$$` only variables of compose with a value for when they are not set.
    for name, config in configs.items():
        text = config["content"]
        left = re.sub(r"\$\{[A-Z_]+:-([^}]*)\}", r"\1", text.replace("$$", "\0"))
        assert "$" not in left, name
        left = left.replace("\0", "$")
        (pathlib.Path(folder) / name).write_text(left)
    scrape = yaml.safe_load((pathlib.Path(folder) / "prometheus").read_text())["scrape_configs"][0]
    port = services["exporter"]["command"][-1].rsplit(":", 1)[1]
    assert scrape["job_name"] == "cufit"
    assert scrape["static_configs"][0]["targets"] == ["exporter:" + port]
    source = yaml.safe_load((pathlib.Path(folder) / "datasource").read_text())["datasources"][0]
    assert source["url"] == "http://prometheus:9090" and source["isDefault"] is True
    json.loads((pathlib.Path(folder) / "board").read_text())


def check_cases(rules, cases):
    """Each alert fires somewhere in the cases, and its metric is there for one that does not."""
    rules = yaml.safe_load(pathlib.Path(rules).read_text())["groups"][0]["rules"]
    cases = yaml.safe_load(pathlib.Path(cases).read_text())["tests"]
    for rule in rules:
        alert, name = rule["alert"], rule["labels"]["rule"]
        metric = re.search(r"(?:cufit_\w+|up)\b", rule["expr"]).group(0)
        mine = [case for case in cases if name in case["name"].split(", ")]
        assert len(mine) == 1, name
        series = [s["series"] for s in mine[0]["input_series"] if s["series"].startswith(metric + "{")]
        fires = [
            sample["labels"]
            for test in mine[0]["promql_expr_test"]
            for sample in test["exp_samples"]
            if 'alertname="%s"' % alert in sample["labels"]
        ]
        assert fires, "%s fires in no case" % alert
        quiet = [s for s in series if not any(same_place(s, labels) for labels in fires)]
        assert quiet, "%s: nothing beside it stays quiet" % alert
    print("%d alerts" % len(rules))


def same_place(series, labels):
    return all(part in series for part in re.findall(r'(?:gpu|instance|pid)="\w+"', labels))


if __name__ == "__main__":
    {"board": check_board, "compose": check_compose, "cases": check_cases}[sys.argv[1]](*sys.argv[2:])
