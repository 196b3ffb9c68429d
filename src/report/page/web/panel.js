// The column of facts beside the charts: the moment, the legend with numbers, the block, matches,
// what-if curves, and the box that explains an out-of-memory.

function fillTable(rows) {
  const table = element("table");
  for (const [name, value, hint] of rows)
    if (value !== null) table.append(element("tr", {}, element("th", {scope: "row"}, name), element("td", {title: hint}, value)));
  return table;
}

class Panel {
  constructor(state) { this.state = state; }

  put(id, ...nodes) { document.getElementById(id).replaceChildren(...nodes); }

  drawMoment() {
    const {state} = this, {moment, map, axis, meta} = state;
    const rows = [
      [Words.say("moment.event"), `${countText(moment)} / ${countText(meta.events)}`],
      [Words.say("moment.time"), axis.times ? timeText(axis.times[moment]) : null],
      [Words.say("moment.step"), state.stepText(moment)],
    ];
    if (state.rows) {
      const totals = map.totals;
      rows.push([Words.say("sum.allocated"), sizeText(totals.allocated), exactText(totals.allocated)],
                [Words.say("sum.pending"), totals.pending ? sizeText(totals.pending) : null],
                [Words.say("sum.reserved"), sizeText(totals.reserved), exactText(totals.reserved)],
                [Words.say("sum.free"), Words.say("sum.free_value", {bytes: sizeText(totals.free), pieces: countText(totals.pieces), largest: sizeText(totals.largest)})]);
    }
    this.put("moment", fillTable(rows));
  }

  // In the order of the areas from top to bottom; values at the moment and at the peak.
  drawLegend() {
    const {state} = this, grouping = state.grouping;
    document.getElementById("legend-title").textContent = Words.say("legend." + grouping);
    const groups = state.levels.groups[grouping];
    const now = state.levels.partsAt(state.moment, grouping);
    const peakBucket = Math.floor(state.peak.event / state.levels.bucket);
    const prepared = state.levels.partsOf(grouping).subarray(peakBucket * groups, (peakBucket + 1) * groups);
    const table = element("table", {class: "legend"}, element("tr", {}, element("th", {scope: "col"}),
      element("th", {scope: "col"}, Words.say("legend.now")), element("th", {scope: "col"}, Words.say("legend.peak"))));
    for (let g = groups - 1; g >= 0; --g) {
      if (prepared[g] === 0 && now && now[g] === 0 && !state.everHeld(g)) continue;
      const chip = element("span", {class: "chip"});
      chip.style.background = Theme.groups[state.colourOf(g)];
      const row = element("tr", {class: state.highlight === g ? "chosen" : "", onmouseenter: () => state.setHighlight(g), onmouseleave: () => state.setHighlight(null)},
        element("th", {scope: "row", title: state.nameOf(g)}, chip, state.nameOf(g)),
        element("td", {}, now ? sizeText(now[g]) : "…"), element("td", {}, sizeText(prepared[g])));
      table.append(row);
    }
    const line = element("span", {class: "chip line"});
    table.append(element("tr", {}, element("th", {scope: "row"}, line, Words.say("line.reserved")),
      element("td", {}, sizeText(state.reserved.valueAt(state.moment))), element("td", {}, sizeText(state.reserved.valueAt(state.peak.event)))));
    this.put("legend", table, element("p", {class: "note"}, Words.say("legend.note")));
  }

  drawBlock() {
    const {state} = this, row = state.chosen !== null ? state.chosen : state.hovered;
    if (row === null || !state.rows) {
      this.put("block", state.gap ? this.gap(state.gap) : element("p", {class: "note"}, Words.say("block.none")));
      return;
    }
    const {rows} = state, size = rows.size[row], requested = rows.requested[row];
    const ended = rows.free[row] !== NEVER;
    const table = fillTable([
      [Words.say("block.size"), sizeText(size), exactText(size)],
      [Words.say("block.requested"), requested === 0 ? Words.say("block.unknown") : requested === size ? exactText(requested)
        : `${exactText(requested)} (+${sizeText(size - requested)})`],
      [Words.say("block.address"), "0x" + rows.address[row].toString(16)],
      [Words.say("block.allocated"), rows.isInitial(row) ? Words.say("block.before") : this.when(rows.alloc[row])],
      [Words.say("block.freed"), ended ? this.when(rows.free[row]) : Words.say("block.never")],
      [Words.say("block.completed"), rows.completed[row] !== NEVER && rows.completed[row] > rows.free[row] + 1 ? this.when(rows.completed[row]) : null],
      [Words.say("block.lived"), ended && !rows.isInitial(row) ? this.lifetime(rows.alloc[row], rows.free[row]) : null],
      [Words.say("block.kind"), state.kindName(rows.groups.kind[row])],
    ]);
    this.put("block", table, this.stack(rows.stack[row]));
  }

  gap({gap, segment}) {
    return fillTable([
      [Words.say("gap.free"), sizeText(gap.size), exactText(gap.size)],
      [Words.say("block.address"), "0x" + gap.address.toString(16)],
      [Words.say("gap.segment"), this.segmentText(segment)],
    ]);
  }

  segmentText(segment) {
    const kind = Words.say(segment.expandable ? "segment.expandable" : segment.small ? "segment.small" : "segment.large");
    const pool = segment.pool ? Words.say("segment.pool", {pool: segment.pool}) : "";
    return `${sizeText(segment.size)}, ${kind}${pool}, ${Words.say("segment.stream", {stream: this.state.segments.streams[segment.stream]})}`;
  }

  when(event) {
    const {axis} = this.state, step = this.state.stepText(event);
    const parts = [Words.say("when.event", {event: countText(event)})];
    if (axis.times) parts.push(timeText(axis.times[event]));
    if (step !== null) parts.push(step);
    return parts.join(" · ");
  }

  lifetime(from, to) {
    const {axis} = this.state;
    const events = Words.say("when.events", {events: countText(to - from)});
    return axis.times ? `${events} · ${timeText(axis.times[to] - axis.times[from])}` : events;
  }

  stack(number) {
    const {stacks} = this.state;
    if (!stacks) return element("p", {class: "note"}, "…");
    const frames = stacks.framesOf(number);
    if (frames.length === 0) return element("p", {class: "note"}, Words.say(number === 0 ? "stack.unrecorded" : "stack.empty"));
    const best = stacks.best(number), list = element("ol", {class: "stack"});
    frames.forEach((frame) => {
      const own = best !== null && frame.name === best.name && frame.file === best.file && frame.line === best.line;
      list.append(element("li", {class: own ? "best" : "", title: `${frame.file}:${frame.line}`},
        element("b", {}, frame.name), ` ${baseName(frame.file)}:${frame.line}`));
    });
    return list;
  }

  drawWhatIfs() {
    const {state} = this, recorded = state.reservedPeak, died = state.whatIfs.some((curve) => curve.withinLimit !== null);
    const inexact = state.whatIfs.some((curve) => curve.notModelled.length > 0);
    const heads = ["settings", "peak", "change"].concat(inexact ? ["exact"] : [], died ? ["limit"] : []);
    const table = element("table", {class: "whatif"}, element("tr", {}, ...heads.map((head) => element("th", {scope: "col"}, Words.say("whatif." + head)))));
    table.append(element("tr", {}, element("th", {scope: "row"}, element("span", {class: "chip line"}), Words.say("whatif.recorded")),
      element("td", {title: exactText(recorded)}, sizeText(recorded)), element("td", {}, ""),
      inexact ? element("td", {}, "") : "", died ? element("td", {}, Words.say("outcome.died")) : ""));
    state.whatIfs.forEach((curve, i) => {
      const box = element("input", {type: "checkbox", onchange: () => { curve.shown = box.checked; state.redraw(); }});
      box.checked = curve.shown;
      table.append(element("tr", {}, element("th", {scope: "row"}, element("label", {}, box, dashSample(i), curve.name)),
        element("td", {title: exactText(curve.peak)}, sizeText(curve.peak)), element("td", {}, changeText(curve.peak, recorded)),
        inexact ? element("td", {}, curve.notModelled.length ? Words.say("whatif.not_exact") : "") : "",
        curve.withinLimit !== null ? element("td", {}, Words.say("outcome." + curve.withinLimit)) : ""));
    });
    const reasons = new Set(state.whatIfs.flatMap((curve) => curve.notModelled));
    const notes = [...reasons].map((reason) => element("p", {class: "note"},
      `${Words.say("whatif.not_exact")}${Words.say("colon")}${Words.has("not_modelled." + reason) ? Words.say("not_modelled." + reason) : reason}`));
    this.put("whatif", table, element("p", {class: "note"}, Words.say("whatif.note") + (died ? Words.say("whatif.limit_note", {file: state.meta.file}) : "")), ...notes);
  }

  drawMatches() {
    const {state} = this, {search} = state;
    document.getElementById("found").hidden = !search.active;
    const summary = document.getElementById("search-summary");
    if (!search.active) { summary.textContent = search.text && !state.rows ? "…" : ""; return; }
    summary.textContent = Words.say(search.rows ? "search.summary" : "search.none", {stacks: countText(search.stacks),
      blocks: countText(search.rows), peak: sizeText(search.peak.bytes), event: countText(search.peak.event)});
    const list = element("ul", {class: "matches"}), here = search.at(state.moment);
    for (const {stack, bytes, blocks} of here.slice(0, 12))
      list.append(element("li", {}, element("button", {onclick: () => this.chooseLargest(stack)},
        element("b", {}, sizeText(bytes)), ` ${Words.say("search.blocks", {blocks: countText(blocks)})} `, state.stacks.title(stack))));
    const more = here.length - Math.min(12, here.length);
    this.put("matches", here.length ? list : element("p", {class: "note"}, Words.say("search.not_here")),
      more > 0 ? element("p", {class: "note"}, Words.say("search.more", {count: countText(more)})) : "");
  }

  chooseLargest(stack) {
    const {state} = this, {rows} = state;
    let best = null;
    for (const row of state.map.blocks)
      if (rows.stack[row] === stack && (best === null || rows.size[row] > rows.size[best])) best = row;
    state.choose(best);
  }

  // What was asked, what was there, and why it did not do: numbers of the recording.
  drawOom() {
    const box = document.getElementById("oom"), {meta} = this.state;
    box.hidden = meta.ooms.length === 0;
    if (box.hidden) return;
    const oom = meta.ooms[0];
    const value = (key) => sizeText(oom[key]);
    const values = {event: countText(oom.event), rounded: value("rounded_bytes"), segment: value("segment_bytes"), allocated: value("allocated"),
      pending: value("pending"), reserved: value("reserved"), free: sizeText(oom.free.bytes), pieces: countText(oom.free.pieces),
      largest: sizeText(oom.free.largest), usable: sizeText(oom.usable.bytes), usable_largest: sizeText(oom.usable.largest),
      device_free: oom.device_free === null ? "" : sizeText(oom.device_free)};
    const lines = [Words.say("oom.asked", {...values, where: this.when(oom.event)}), Words.say("oom.held", values)];
    lines.push(Words.say(oom.usable.pieces ? "oom.pieces" : "oom.no_pieces", values));
    if (oom.usable.bytes >= oom.rounded_bytes && oom.usable.largest < oom.rounded_bytes) lines.push(Words.say("oom.scattered", values));
    if (oom.device_free !== null) lines.push(Words.say(oom.device_free < oom.segment_bytes ? "oom.device_full" : "oom.device_had", values));
    const others = meta.ooms.length > 1 ? Words.say("oom.others", {count: meta.ooms.length - 1}) : "";
    box.replaceChildren(element("h2", {}, "▼ " + Words.say("oom.title", values)),
      element("p", {}, lines.join(Words.lang === "zh" ? "" : " ") + others),
      element("p", {class: "note"}, Words.say("oom.causes", {file: meta.file})));
  }
}

function changeText(bytes, before) {
  if (before === 0) return "";
  const percent = (bytes - before) / before * 100;
  const sign = percent >= 0.05 ? "+" : percent <= -0.05 ? "−" : "±";
  return `${sign}${Math.abs(percent).toFixed(1)} %`;
}

function dashSample(index) {
  const sample = document.getElementById("dash").content.cloneNode(true);
  sample.querySelector("line").setAttribute("stroke-dasharray", DASHES[index % DASHES.length].join(" "));
  return sample;
}
