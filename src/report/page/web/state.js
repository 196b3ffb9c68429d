// What is shown at this moment, and the only place where it changes.

class State {
  constructor(meta) {
    this.meta = meta;
    this.grouping = "kind";
    this.moment = 0;
    this.chosen = null;   // a row: clicked
    this.hovered = null;  // a row: under the cursor
    this.gap = null;      // free space under the cursor
    this.highlight = null;
    this.dragged = null;
    this.rows = this.segments = this.stacks = null;
    this.axis = new Axis(meta.events, null);
    this.search = new Search(this);
    this.pending = false;
  }

  setOverview(columns) {
    const {meta} = this;
    this.levels = new Levels(meta, columns);
    this.reserved = new StepSeries(columns.reserved_event, columns.reserved_bytes);
    this.reservedPeak = largest(this.reserved.bytes);
    this.steps = {begins: columns.step_begin, first: meta.first_step};
    this.whatIfs = meta.what_ifs.map((curve, i) => ({
      settings: curve.settings, asRecorded: curve.as_recorded, notModelled: curve.not_modelled,
      withinLimit: curve.within_limit, shown: curve.settings === "expandable_segments:True" && !curve.as_recorded,
      series: new StepSeries(columns["whatif_event" + i], columns["whatif_bytes" + i]), peak: curve.peak_reserved_bytes,
      get name() { return this.asRecorded ? Words.say("whatif.again") : this.settings || Words.say("whatif.defaults"); },
    }));
    this.peak = this.levels.peak();
    this.moment = meta.ooms.length ? meta.ooms[0].event : this.peak.event;
  }

  setDetail(columns) {
    this.rows = new Rows(this.meta, columns);
    this.segments = new Segments(this.meta, columns);
    this.levels.setDetail(this.rows, columns);
    if (columns.time.length) this.axis.times = rising(columns.time);
  }

  kindName(group) { return Words.say("kind." + this.meta.kinds[group]); }
  nameOf(group) {
    if (this.grouping === "kind") return this.kindName(group);
    if (group === 0) return Words.say("stack.others");
    return this.stacks ? this.stacks.title(this.meta.stack_groups[group - 1]) : "…";
  }
  colourOf(group) { return this.grouping === "kind" ? (group * 2) % GROUP_COLOURS : group % GROUP_COLOURS; }
  everHeld(group) {
    const parts = this.levels.partsOf(this.grouping), groups = this.levels.groups[this.grouping];
    for (let i = group; i < parts.length; i += groups) if (parts[i] > 0) return true;
    return false;
  }
  stepText(event) {
    const {begins, first} = this.steps;
    const i = upperBound(begins, event) - 1;
    return begins.length === 0 ? null : i < 0 ? Words.say("step.before") : Words.say("step.label", {step: i + first});
  }

  setMoment(event, reveal = true) {
    this.moment = Math.max(0, Math.min(this.meta.events - 1, event));
    if (reveal) this.axis.reveal(this.moment);
    this.redraw();
  }
  setGrouping(grouping) {
    if (grouping === "stack" && !this.rows) return;
    this.grouping = grouping;
    this.highlight = null;
    this.redraw();
  }
  setHighlight(group) {
    if (this.highlight === group) return;
    this.highlight = group;
    this.redrawCharts();
  }
  choose(row) {
    this.chosen = row;
    if (row !== null) this.map.scrollTo(row);
    this.redraw();
  }
  hover(row, gap = null) {
    if (this.hovered === row && this.gap === gap) return;
    this.hovered = row;
    this.gap = gap;
    this.redrawCharts();
    this.panel.drawBlock();
  }

  redrawCharts() { this.schedule(false); }
  redraw() { this.schedule(true); }
  schedule(all) {
    this.all = this.all || all;
    if (this.pending) return;
    this.pending = true;
    requestAnimationFrame(() => { this.pending = false; const whole = this.all; this.all = false; this.draw(whole); });
  }
  draw(all) {
    this.timeline.draw();
    this.map.draw();
    if (!all) return;
    this.overview.draw();
    this.panel.drawMoment();
    this.panel.drawLegend();
    this.panel.drawBlock();
    this.panel.drawMatches();
    this.panel.drawWhatIfs();
    document.getElementById("map-title").textContent = this.rows ? this.map.title() : "";
    document.getElementById("map-legend").textContent = this.rows ? Words.say("map.legend", {scale: sizeText(this.map.scale)}) : "";
    for (const [attribute, value] of [["grouping", this.grouping], ["axis", this.axis.mode], ["lang", Words.lang]])
      for (const button of document.querySelectorAll(`button[data-${attribute}]`))
        button.setAttribute("aria-pressed", button.dataset[attribute] === value);
  }
}

function largest(values) { return values.reduce((a, b) => Math.max(a, b), 0); }

// Clocks may step back; the axis may not.
function rising(times) {
  for (let i = 1; i < times.length; ++i) if (times[i] < times[i - 1]) times[i] = times[i - 1];
  return times;
}
