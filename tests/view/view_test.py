# SPDX-License-Identifier: Apache-2.0
"""The page of `cufit mem view` in a real Chromium: `view_test.py CUFIT [FOLDER]`. Compares what the page shows with what
oracle.py computes from the pickle, drives mouse and keys, and leaves pictures in FOLDER for people to look at. VIEW_TRACES and VIEW_EVENTS (of the large trace; 0: none) make it shorter."""

import json
import os
import pickle
import random
import subprocess
import sys
import time

import make_trace
from browser import Browser, find_chromium
from oracle import Run, read

SOURCE = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))
TRACES = os.environ.get("VIEW_TRACES", "trace-varlen oom-varlen trace-gpt2-stacks graphs streams varlen-expandable varlen-ring two-gpus:1").split()
HOSTILE = "</script><script>window.stolen=1</script>\"'`<!--<img src=x onerror=window.stolen=2>\u202e"


class Checks:
    def __init__(self):
        self.failed = []
        self.count = 0

    def equal(self, what, got, wanted):
        self.count += 1
        if got != wanted:
            self.failed.append(f"{what}: {got!r}, wanted {wanted!r}")
            print("FAILED", self.failed[-1])

    def true(self, what, holds):
        self.equal(what, bool(holds), True)


def write_page(cufit, snapshot, page, *more):
    begin = time.monotonic()
    subprocess.run([cufit, "mem", "view", snapshot, "-o", page, *more], check=True)
    return time.monotonic() - begin


def block_panel(browser):
    return browser.evaluate("""Object.fromEntries([...document.querySelectorAll('#block tr')].map(
        r => [r.cells[0].textContent, r.cells[1].textContent + '|' + r.cells[1].title]))""")


def on_screen(browser, canvas, x, y):
    box = browser.evaluate(f"(() => {{ const b = document.getElementById('{canvas}').getBoundingClientRect(); return [b.x, b.y]; }})()")
    return box[0] + x, box[1] + y


def set_moment(browser, event):
    browser.evaluate(f"cufit.setMoment({event})")
    browser.frame()


def check_moment(check, browser, run, event, exact):
    """The segment map at a moment: what lies on it, and that it adds up."""
    set_moment(browser, event)
    shown = browser.evaluate("""(() => { const {map, rows, levels} = cufit; const allocated = map.blocks.filter(r => rows.isAllocated(r, map.event));
        return {rows: allocated.map(r => [rows.address[r], rows.requested[r]]), sum: allocated.reduce((s, r) => s + rows.size[r], 0),
          parts: levels.partsAt(map.event, 'kind').reduce((a, b) => a + b, 0), stacks: levels.partsAt(map.event, 'stack').reduce((a, b) => a + b, 0),
          total: map.totals.allocated, pending: map.totals.pending, reserved: map.totals.reserved, line: cufit.reserved.valueAt(map.event),
          free: map.totals.free, ends: map.blocks.every((r, i) => i === 0 || rows.address[map.blocks[i - 1]] + rows.size[map.blocks[i - 1]] <= rows.address[r])}; })()""")
    where = f"event {event}"
    check.equal(f"{where}: map adds up to the timeline", shown["sum"], shown["parts"])
    check.equal(f"{where}: by stack as by kind", shown["stacks"], shown["parts"])
    check.equal(f"{where}: table says the same", shown["total"], shown["sum"])
    check.true(f"{where}: blocks do not overlap", shown["ends"])
    if exact:
        living = {a: b["requested"] for a, b in run.living(event).items()}
        check.equal(f"{where}: the blocks of the pickle", dict(shown["rows"]), living)
    check.equal(f"{where}: reserved", shown["reserved"], run.reserved(event))
    check.equal(f"{where}: reserved line", shown["line"], run.reserved(event))
    check.equal(f"{where}: blocks and gaps fill the segments", shown["total"] + shown["pending"] + shown["free"], shown["reserved"])


def check_hover(check, browser, run, event, tries=12):
    """The mouse over a block shows that block: every word of the panel against the pickle."""
    set_moment(browser, event)
    living = run.living(event)
    places = browser.evaluate("""cufit.map.blocks.map(r => [cufit.rows.address[r], cufit.map.placesOf(r)[0]])
        .filter(([, p]) => p && p.width >= 4 && p.y > 0 && p.y + 12 < cufit.map.surface.height)""")
    for address, place in random.sample(places, min(tries, len(places))):
        if address not in living:
            continue
        block = living[address]
        x, y = on_screen(browser, "map", place["x"] + place["width"] / 2 - 0.5, place["y"] + 5)
        browser.mouse("mouseMoved", x, y)
        browser.frame()
        panel = block_panel(browser)
        check.true(f"hover at event {event} shows {address:#x}", panel.get("address", "").startswith(f"{address:#x}|"))
        check.true("its request", panel.get("requested", "").startswith(f"{block['requested']:,} B"))
        check.true("its birth", panel.get("allocated", "").startswith(f"event {block['alloc']:,} "))
        freed = f"event {block['free']:,} " if block["free"] is not None else "not in this recording"
        check.true("its end", panel.get("freed", "").startswith(freed))
        if block["frames"]:
            names = browser.evaluate("[...document.querySelectorAll('#block .stack b')].map(b => b.textContent)")
            check.equal("its stack", names, [f["name"] for f in block["frames"]])


def check_zoom(check, browser):
    span = lambda: browser.evaluate("[cufit.axis.from, cufit.axis.to, cufit.axis.end()]")
    browser.evaluate("cufit.axis.showAll(); cufit.redraw()")
    browser.frame()
    x, y = on_screen(browser, "timeline", 400, 150)
    under = "cufit.timeline.valueAt(400)"
    before = browser.evaluate(under)
    for _ in range(4):
        browser.mouse("mouseWheel", x, y, deltaX=0, deltaY=-200)
        browser.frame()
    low, high, end = span()
    check.true("the wheel zooms in", high - low < 0.5 * end)
    check.true("around the cursor", abs(browser.evaluate(under) - before) < 0.02 * end)
    browser.mouse("mousePressed", x, y, button="left", clickCount=1, buttons=1)
    browser.mouse("mouseMoved", x - 100, y, button="left", buttons=1)
    browser.mouse("mouseReleased", x - 100, y, button="left", clickCount=1)
    browser.frame()
    check.true("dragging pans", span()[0] > low and abs(span()[1] - span()[0] - (high - low)) < 1e-6 * end)
    browser.key("Home", 36)
    check.equal("Home shows all", span()[:2], [0, end])
    browser.key("+", 187, "+")
    check.true("plus zooms", abs((span()[1] - span()[0]) * 2 - end) < 1e-6 * end)
    browser.key("-", 189, "-")
    check.equal("minus zooms back", span()[:2], [0, end])
    moment = browser.evaluate("cufit.moment")
    browser.key("ArrowLeft", 37, modifiers=8)
    check.true("Shift and an arrow go to a change", browser.evaluate("cufit.moment") < moment or moment == 0)
    browser.key("t", 84, "t")
    check.equal("t switches to time", browser.evaluate("cufit.axis.mode"), "time")
    browser.key("t", 84, "t")


def check_columns(check, browser):
    """Each column's value is what is allocated after its event, at every zoom; none in its range is higher."""
    for low, high in ((0, 1), (0.3, 0.5), (0.7, 0.72)):
        browser.evaluate(f"cufit.axis.show({low} * cufit.axis.end(), {high} * cufit.axis.end()); cufit.redraw()")
        browser.frame()
        wrong = browser.evaluate("""(() => { const {timeline, levels, rows, meta} = cufit, {lows, highs, columns} = timeline;
            const total = new Float64Array(meta.events); let now = 0;
            for (let r = 0; r < rows.initial; ++r) if (rows.free[r] !== 0) now += rows.size[r];
            for (let e = 0; e < meta.events; ++e) { const c = rows.at[e]; now += c > 0 ? rows.size[c - 1] : c < 0 ? -rows.size[-c - 1] : 0; total[e] = now; }
            let wrong = 0;
            for (let c = 0; c < lows.length; ++c) {
              let sum = 0; for (let g = 0; g < columns.groups; ++g) sum += columns.parts[c * columns.groups + g];
              if (sum !== columns.max[c] || total[columns.at[c]] !== columns.max[c]) ++wrong;
              const from = Math.floor(lows[c] / levels.bucket) * levels.bucket, to = Math.min(meta.events - 1, (Math.floor(highs[c] / levels.bucket) + 1) * levels.bucket - 1);
              let outer = 0; for (let e = from; e <= to; ++e) outer = Math.max(outer, total[e]);
              const last = highs[c] === meta.events - 1 ? highs[c] : highs[c] - levels.bucket;
              let inner = 0, least = Infinity; for (let e = lows[c] + levels.bucket; e <= last; ++e) { inner = Math.max(inner, total[e]); least = Math.min(least, total[e]); }
              if (columns.max[c] > outer || columns.max[c] < inner || columns.min[c] > least) ++wrong;
            }
            return wrong; })()""")
        check.equal(f"columns at zoom {low} to {high}", wrong, 0)
    browser.evaluate("cufit.axis.showAll(); cufit.redraw()")


def check_search(check, browser, run, text):
    blocks, stacks = run.found(text)
    browser.key("/", 191, "/")
    check.equal("/ goes to the search", browser.evaluate("document.activeElement.id"), "search")
    browser.call("Input.insertText", text=text)
    for _ in range(40):
        time.sleep(0.05)
        if browser.evaluate("cufit.search.text") == text:
            break
    browser.frame()
    summary = browser.evaluate("document.getElementById('search-summary').textContent")
    wanted = f"stacks: {stacks:,}, blocks: {blocks:,};" if blocks else "no block"
    check.true(f"search for {text!r}: {summary!r} begins with {wanted!r}", summary.startswith(wanted))
    return blocks


def check_language_and_scheme(check, browser):
    ground = "getComputedStyle(document.body).backgroundColor"
    light = browser.evaluate(ground)
    browser.scheme("dark")
    check.true("dark differs from light", browser.evaluate(ground) != light)
    browser.scheme("light")
    browser.evaluate("document.querySelector('[data-lang=zh]').click()")
    browser.frame()
    check.true("Chinese", "已分配" in browser.evaluate("document.getElementById('moment').textContent"))
    check.equal("no text is missing in Chinese", browser.evaluate("/\\b(moment|legend|whatif|map|oom|kind|stack)\\.\\w+/.test(document.body.innerText)"), False)
    browser.evaluate("document.querySelector('[data-lang=en]').click()")
    browser.frame()
    check.equal("no text is missing in English", browser.evaluate("/\\b(moment|legend|whatif|map|oom|kind|stack)\\.[a-z_]+\\b/.test(document.body.innerText)"), False)


def check_trace(check, browser, cufit, folder, name):
    name, _, device = name.partition(":")
    snapshot = os.path.join(SOURCE, "tests", "traces", name + ".pkl.gz")
    page = os.path.join(folder, name + ".html")
    more = ["--device", device] if device else []
    seconds = write_page(cufit, snapshot, page, *more)
    marks = browser.open(page)
    print(f"{name}: written in {seconds:.2f} s, {os.path.getsize(page):,} bytes; first picture {marks['first-paint']:.0f} ms, "
          f"complete {marks['complete']:.0f} ms")
    run = Run(read(snapshot), int(device or 0))
    whole = run.is_whole()
    answer = json.loads(subprocess.run([cufit, "mem", "replay", snapshot, "--json", *more], check=True, stdout=subprocess.PIPE).stdout)
    recorded = answer["recorded"]
    check.equal(f"{name}: events", browser.evaluate("cufit.meta.events"), len(run.trace))
    if whole:
        check.equal(f"{name}: peak allocated", browser.evaluate("cufit.peak.bytes"), recorded["peak_allocated_bytes"])
    check.equal(f"{name}: ooms", [[o["event"], o["rounded_bytes"]] for o in browser.evaluate("cufit.meta.ooms")], [list(o) for o in run.ooms()])
    random.seed(name)
    moments = [0, len(run.trace) - 1, browser.evaluate("cufit.peak.event")] + random.sample(range(len(run.trace)), 5)
    for event in moments:
        check_moment(check, browser, run, event, whole)
    if whole:
        check_hover(check, browser, run, moments[-1])
        check_hover(check, browser, run, moments[2])
    check_columns(check, browser)
    check_zoom(check, browser)
    browser.evaluate("cufit.setMoment(cufit.meta.ooms.length ? cufit.meta.ooms[0].event : cufit.peak.event)")
    browser.frame()
    browser.picture(os.path.join(folder, name + ".png"))
    if whole:
        check_search(check, browser, run, "forward" if any(b["frames"] for b in run.blocks) else "nowhere")
        browser.picture(os.path.join(folder, name + "-search.png"))
        browser.key("Escape", 27)
        check.equal("Escape ends the search", browser.evaluate("cufit.search.active"), False)
    check_language_and_scheme(check, browser)
    check.equal(f"{name}: errors", browser.errors, [])
    browser.errors.clear()


def check_hostile(check, browser, cufit, folder):
    """Markup in names is text; nothing of it runs."""
    snapshot = make_trace.make(3000)
    for entry in snapshot["device_traces"][0]:
        entry["frames"] = [{"name": HOSTILE, "filename": "/a/" + HOSTILE, "line": 7}]
    file = os.path.join(folder, "host<ile>\"&'.pickle")
    with open(file, "wb") as out:
        pickle.dump(snapshot, out, protocol=4)
    page = os.path.join(folder, "hostile.html")
    write_page(cufit, file, page)
    browser.open(page)
    browser.evaluate("cufit.setGrouping('stack'); cufit.choose(cufit.map.blocks[0]); setSearch(cufit, 'script')")
    browser.frame()
    check.equal("no script of the file ran", browser.evaluate("window.stolen"), None)
    check.equal("the name is shown as it is", browser.evaluate("document.querySelector('#block .stack b').textContent"),
                HOSTILE.replace("\u202e", "\\u202e"))
    check.equal("the file's name too", browser.evaluate("document.getElementById('file').textContent"), os.path.basename(file))
    with open(page, encoding="utf-8") as text:
        check.equal("as many scripts as the page has", text.read().count("</script>"), 5)
    check.equal("hostile: errors", browser.errors, [])
    browser.errors.clear()
    browser.picture(os.path.join(folder, "hostile.png"))


def check_native(check, browser, cufit, folder):
    """Frames of C++ are shown, and name no place: torch puts its own first on every stack."""
    native = [{"name": "torch::unwind::unwind()", "filename": "??", "line": 0}, {"name": "malloc", "filename": "CUDACachingAllocator.cpp", "line": 0}]
    python = [{"name": "run", "filename": "train.py", "line": 13}]
    trace = [{"action": "segment_alloc", "addr": 1 << 40, "size": 2 << 20, "stream": 0},
             {"action": "alloc", "addr": 1 << 40, "size": 512, "stream": 0, "frames": native + python},
             {"action": "alloc", "addr": (1 << 40) + 512, "size": 512, "stream": 0, "frames": native}]
    file, page = os.path.join(folder, "native.pickle"), os.path.join(folder, "native.html")
    with open(file, "wb") as out:
        pickle.dump({"segments": [], "device_traces": [trace]}, out, protocol=4)
    write_page(cufit, file, page)
    browser.open(page)
    for row, title, best in ((0, "run train.py:13", ["run"]), (1, "no Python frame (backward pass or C++ thread)", [])):
        browser.evaluate(f"cufit.setMoment(2); cufit.choose({row})")
        browser.frame()
        check.equal("native: the place", browser.evaluate(f"cufit.stacks.title(cufit.rows.stack[{row}])"), title)
        check.equal("native: every frame is shown", browser.evaluate("document.querySelectorAll('#block .stack li').length"), 3 - row)
        check.equal("native: the one that counts", browser.evaluate("[...document.querySelectorAll('#block .stack li.best b')].map(b => b.textContent)"), best)
    check.equal("native: errors", browser.errors, [])
    browser.errors.clear()


def check_small(check, browser, cufit, folder):
    """Runs with next to nothing in them, without times, without stacks."""
    alloc = {"action": "alloc", "addr": 1 << 40, "size": 700, "stream": 0}
    runs = {"one": [{"action": "snapshot", "addr": 0, "size": 0, "stream": 0, "time_us": 5, "frames": []}],
            "untimed": [{"action": "segment_alloc", "addr": 1 << 40, "size": 2 << 20, "stream": 0}, alloc],
            "same-time": [dict(alloc, time_us=9), {"action": "oom", "addr": 4096, "size": 1 << 30, "stream": 0, "time_us": 9}]}
    for name, trace in runs.items():
        file = os.path.join(folder, name + ".pickle")
        with open(file, "wb") as out:
            pickle.dump({"segments": [], "device_traces": [trace]}, out, protocol=4)
        page = os.path.join(folder, name + ".html")
        write_page(cufit, file, page)
        browser.open(page)
        for key, code in (("t", 84), ("g", 71), ("+", 187), ("+", 187), ("ArrowRight", 39), ("p", 80), ("o", 79), ("End", 35), ("Home", 36)):
            browser.key(key, code)
        x, y = on_screen(browser, "timeline", 300, 200)
        browser.click(x, y)
        check.equal(f"{name}: time can be chosen", browser.evaluate("document.querySelector('[data-axis=time]').disabled"), name == "untimed")
        check.equal(f"{name}: errors", browser.errors, [])
        browser.errors.clear()


def check_large(check, browser, cufit, folder, events):
    file = os.path.join(folder, f"large-{events}.pickle")
    if not os.path.exists(file):
        with open(file, "wb") as out:
            pickle.dump(make_trace.make(events), out, protocol=4)
    page = os.path.join(folder, "large.html")
    seconds = write_page(cufit, file, page)
    times = [browser.open(page) for _ in range(3)]
    times.sort(key=lambda marks: marks["interactive"])
    marks = times[1]
    print(f"{browser.evaluate('cufit.meta.events'):,} events: written in {seconds:.2f} s, {os.path.getsize(page):,} bytes; "
          f"first picture {marks['first-paint']:.0f} ms, interactive {marks['interactive']:.0f} ms, complete {marks['complete']:.0f} ms")
    draw = browser.evaluate("""(() => { const times = []; for (let i = 0; i < 20; ++i) { cufit.axis.show(i * 1000, cufit.axis.end() / (1 + i)); cufit.map.event = -1;
        const t = performance.now(); cufit.draw(true); times.push(performance.now() - t); } times.sort((a, b) => a - b); return [times[10], times[19]]; })()""")
    print(f"drawing all: median {draw[0]:.0f} ms, slowest {draw[1]:.0f} ms")
    run = Run(read(file))
    for event in (0, 1_234 % len(run.trace), len(run.trace) * 2 // 3, len(run.trace) - 1):
        check_moment(check, browser, run, event, True)
    check_columns(check, browser)
    check_zoom(check, browser)
    browser.picture(os.path.join(folder, "large.png"))
    check.equal("large: errors", browser.errors, [])


def main():
    cufit = os.path.abspath(sys.argv[1])
    folder = os.path.abspath(sys.argv[2] if len(sys.argv) > 2 else "view-pictures")
    events = int(os.environ.get("VIEW_EVENTS", "2000000"))
    program = find_chromium()
    if program is None:
        print("skipped: there is no chromium on this machine (apt-get install chromium)")
        return 0
    os.makedirs(folder, exist_ok=True)
    check = Checks()
    browser = Browser(program)
    try:
        for name in TRACES:
            check_trace(check, browser, cufit, folder, name)
        check_small(check, browser, cufit, folder)
        check_native(check, browser, cufit, folder)
        check_hostile(check, browser, cufit, folder)
        if events:
            check_large(check, browser, cufit, folder, events)
    finally:
        browser.close()
    print(f"{check.count} checks, {len(check.failed)} failed; pictures in {folder}")
    return 1 if check.failed else 0


if __name__ == "__main__":
    sys.exit(main())
