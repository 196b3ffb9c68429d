// The memory timeline: areas of allocated bytes (areas.js), reserved and what-if lines, steps, the
// moment, out-of-memory marks. Draws one column of pixels at a time from Levels.sample.

const PLOT = {left: 78, right: 14, top: 22, bottom: 24};
const DASHES = [[6, 3], [2, 3], [10, 3, 2, 3], [4, 6], [1, 2], [12, 4]];

class Timeline {
  constructor(state) {
    this.state = state;
    this.surface = new Surface("timeline");
    this.areas = new Areas(this);
    this.columns = null;  // of the last drawing
  }

  plotWidth() { return Math.max(1, this.surface.width - PLOT.left - PLOT.right); }
  plotHeight() { return this.surface.height - PLOT.top - PLOT.bottom; }
  x(value) {
    const {axis} = this.state;
    return PLOT.left + (value - axis.from) / (axis.to - axis.from) * this.plotWidth();
  }
  valueAt(x) {
    const {axis} = this.state;
    return axis.from + (x - PLOT.left) / this.plotWidth() * (axis.to - axis.from);
  }
  y(bytes) { return PLOT.top + this.plotHeight() * (1 - bytes / this.top); }
  // The event that the column under x shows, which is where its allocated bytes are highest.
  eventAt(x) {
    const column = Math.max(0, Math.min(this.columns.at.length - 1, Math.floor(x - PLOT.left)));
    return this.columns.at[column];
  }

  draw() {
    const context = this.surface.begin();
    if (this.surface.width === 0) return;
    this.measure();
    this.drawOomNames(context);
    this.drawGrid(context);
    this.areas.draw(context);
    this.areas.drawLowest(context);
    this.drawLines(context);
    this.drawOoms(context);
    this.drawBlockLife(context);
    this.drawMoment(context);
    this.drawFrame(context);
  }

  measure() {
    const {state} = this, {axis, levels} = state;
    const width = Math.floor(this.plotWidth());
    const lows = new Uint32Array(width), highs = new Uint32Array(width);
    const span = (axis.to - axis.from) / width;
    for (let c = 0; c < width; ++c) {
      lows[c] = axis.eventAt(axis.from + c * span);
      const next = axis.from + (c + 1) * span;
      const high = axis.eventAt(next);
      // The event that begins at the right edge belongs to the next column.
      highs[c] = Math.max(lows[c], axis.valueOf(high) >= next ? high - 1 : high);
    }
    this.lows = lows;
    this.highs = highs;
    this.columns = levels.sample(lows, highs, state.grouping);
    this.matched = state.search.active ? levels.sample(lows, highs, "match") : null;
    this.top = this.highest() * 1.08;
  }

  // One scale for the whole run, so that zooming in never changes heights.
  highest() {
    const {state} = this;
    let top = Math.max(state.levels.peak().bytes, state.reservedPeak);
    for (const curve of state.whatIfs) if (curve.shown) top = Math.max(top, curve.peak);
    return Math.max(top, 1024);
  }

  drawGrid(context) {
    const {axis} = this.state, right = this.surface.width - PLOT.right;
    const bottom = this.surface.height - PLOT.bottom;
    const bytes = binaryTicks(this.top, this.plotHeight() / 36);
    context.textAlign = "right";
    for (const value of bytes.values) {
      context.strokeStyle = Theme.faint;
      horizontalLine(context, PLOT.left, right, this.y(value));
      context.fillStyle = Theme.soft;
      context.fillText(value === 0 ? "0" : sizeText(value), PLOT.left - 8, this.y(value));
    }
    const ticks = decimalTicks(axis.from, axis.to, this.plotWidth() / 110);
    context.textAlign = "center";
    for (const value of ticks.values) {
      if (axis.mode === "event" && !Number.isInteger(value)) continue;
      const x = this.x(value);
      context.strokeStyle = Theme.soft;
      verticalLine(context, x, bottom, bottom + 4);
      context.fillStyle = Theme.soft;
      const text = axis.text(value, ticks.step), half = context.measureText(text).width / 2;
      context.fillText(text, Math.min(x, this.surface.width - half - 1), bottom + 13);
    }
    this.drawSteps(context, bottom);
  }

  drawSteps(context, bottom) {
    const {axis, steps} = this.state;
    const first = Math.max(0, upperBound(steps.begins, axis.eventAt(axis.from)) - 1);
    const last = upperBound(steps.begins, axis.eventAt(axis.to));
    const shown = Math.max(1, last - first);
    const room = Math.max(1, Math.floor(this.plotWidth() / 64));
    const every = decimalTicks(0, shown, room).step;
    const stride = Math.max(1, Math.round(every));
    context.textAlign = "left";
    let drawn = -Infinity;  // by time, steps may lie close in one place
    for (let i = first; i < last; ++i) {
      const x = this.x(axis.valueOf(steps.begins[i]));
      if ((i + steps.first) % stride !== 0 || x - drawn < 16) continue;
      drawn = x;
      const next = i + stride < steps.begins.length ? this.x(axis.valueOf(steps.begins[i + stride])) : Infinity;
      if (x >= PLOT.left && x <= this.surface.width - PLOT.right) {
        context.strokeStyle = Theme.line;
        verticalLine(context, x, 4, bottom);
      }
      const left = Math.max(x, PLOT.left) + 4;
      const text = Words.say("step.label", {step: i + steps.first});
      const right = left + context.measureText(text).width;
      context.fillStyle = Theme.soft;
      if (x < this.surface.width - PLOT.right && right <= Math.min(next, this.surface.width) &&
          !this.oomNames.some((name) => left < name.right && right > name.left))
        context.fillText(text, left, 10);
    }
  }

  drawLines(context) {
    const {state} = this;
    const ends = [];
    state.whatIfs.forEach((curve, i) => {
      if (!curve.shown) return;
      context.setLineDash(DASHES[i % DASHES.length]);
      ends.push({y: this.drawStepLine(context, curve.series, Theme.soft, 1.25), text: curve.name, colour: Theme.soft});
    });
    context.setLineDash([]);
    ends.push({y: this.drawStepLine(context, state.reserved, Theme.reserved, 1.75),
               text: Words.say("line.reserved"), colour: Theme.reserved});
    this.nameLines(context, ends);
  }

  drawStepLine(context, series, colour, width) {
    context.strokeStyle = colour;
    context.lineWidth = width;
    context.beginPath();
    let y = 0;
    for (let c = 0; c < this.lows.length; ++c) {
      const {max, min, last} = series.over(this.lows[c], this.highs[c]);
      const x = PLOT.left + c;
      if (min < max) {
        context.lineTo(x + 0.5, this.y(min));
        context.lineTo(x + 0.5, this.y(max));
      }
      y = this.y(last);
      context.lineTo(x, y);
      context.lineTo(x + 1, y);
    }
    context.stroke();
    context.lineWidth = 1;
    return y;
  }

  // Names at the right end, above their lines; where lines are close, the names are stacked upwards.
  nameLines(context, ends) {
    ends.sort((a, b) => b.y - a.y);
    let free = Infinity;
    for (const end of ends) {
      const y = Math.max(8, Math.min(end.y - 9, free));
      free = y - 15;
      label(context, end.text, this.surface.width - PLOT.right - 10, y, end.colour, "right");
    }
  }

  // In the strip of the steps, before them: where each name stands.
  drawOomNames(context) {
    this.oomNames = [];
    let free = -Infinity;
    for (const x of this.oomPlaces()) {
      if (x - 80 < free) continue;
      this.oomNames.push(label(context, Words.say("oom.mark"), Math.max(x + 8, PLOT.left + 70), 9, Theme.oom, "right"));
      free = this.oomNames[this.oomNames.length - 1].right;
    }
  }

  oomPlaces() {
    return this.state.meta.ooms.map((oom) => this.x(this.state.axis.valueOf(oom.event)))
      .filter((x) => x >= PLOT.left - 1 && x <= this.surface.width - PLOT.right + 1);
  }

  drawOoms(context) {
    const bottom = this.surface.height - PLOT.bottom;
    for (const x of this.oomPlaces()) {
      context.strokeStyle = Theme.oom;
      context.lineWidth = 1.5;
      context.setLineDash([3, 2]);
      verticalLine(context, x, PLOT.top, bottom);
      context.setLineDash([]);
      context.lineWidth = 1;
      context.fillStyle = Theme.oom;
      context.beginPath();
      context.moveTo(x - 5, PLOT.top - 2);
      context.lineTo(x + 5, PLOT.top - 2);
      context.lineTo(x, PLOT.top + 6);
      context.fill();
    }
  }

  // From where to where the chosen block lives.
  drawBlockLife(context) {
    const {state} = this, row = state.chosen;
    if (row === null || !state.rows) return;
    const from = row < state.rows.initial ? state.axis.from : state.axis.valueOf(state.rows.alloc[row]);
    const to = state.rows.free[row] === NEVER ? state.axis.to : state.axis.valueOf(state.rows.free[row]);
    const left = Math.max(PLOT.left, this.x(from));
    const right = Math.max(left + 2, Math.min(this.surface.width - PLOT.right, this.x(to)));
    if (right < PLOT.left || left > this.surface.width - PLOT.right) return;
    const y = this.surface.height - PLOT.bottom - 4;
    context.fillStyle = Theme.moment;
    context.fillRect(left, y - 2, right - left, 4);
    if (row >= state.rows.initial && this.x(from) >= PLOT.left) context.fillRect(left, y - 7, 1.5, 11);
    if (state.rows.free[row] !== NEVER && this.x(to) <= this.surface.width - PLOT.right) context.fillRect(right - 1.5, y - 7, 1.5, 11);
  }

  drawMoment(context) {
    const x = this.x(this.state.axis.valueOf(this.state.moment));
    if (x < PLOT.left - 1 || x > this.surface.width - PLOT.right + 1) return;
    const bottom = this.surface.height - PLOT.bottom;
    context.strokeStyle = Theme.moment;
    verticalLine(context, x, PLOT.top, bottom);
    context.fillStyle = Theme.moment;
    context.beginPath();
    context.moveTo(x - 4.5, bottom + 6);
    context.lineTo(x + 5.5, bottom + 6);
    context.lineTo(x + 0.5, bottom);
    context.fill();
  }

  drawFrame(context) {
    context.strokeStyle = Theme.soft;
    const bottom = this.surface.height - PLOT.bottom;
    horizontalLine(context, PLOT.left, this.surface.width - PLOT.right, bottom);
    verticalLine(context, PLOT.left - 1, PLOT.top, bottom);
    const range = this.state.dragged;
    if (!range) return;
    context.fillStyle = Theme.moment;
    context.globalAlpha = 0.15;
    context.fillRect(Math.min(range.from, range.to), PLOT.top, Math.abs(range.to - range.from), bottom - PLOT.top);
    context.globalAlpha = 1;
  }

  // {event, bytes, group, row} under a point; group and row are null above the areas.
  hit(x, y) {
    if (x < PLOT.left || x > this.surface.width - PLOT.right || !this.columns) return null;
    const {state} = this;
    const column = Math.min(this.columns.at.length - 1, Math.floor(x - PLOT.left));
    const out = {event: this.columns.at[column], max: this.columns.max[column],
                 min: this.columns.min[column], low: this.lows[column], high: this.highs[column], group: null, row: null};
    let bytes = (1 - (y - PLOT.top) / this.plotHeight()) * this.top;
    const {groups, parts} = this.columns;
    for (let g = 0; g < groups && bytes >= 0; ++g) {
      const part = parts[column * groups + g];
      if (bytes < part) {
        out.group = g;
        out.row = state.rows ? rowInGroup(state, out.event, g, bytes) : null;
        break;
      }
      bytes -= part;
    }
    return out;
  }
}

// Inside a group, the blocks lie in the order of their allocation.
function rowInGroup(state, event, group, bytes) {
  const of = state.rows.groups[state.grouping];
  for (const row of state.rows.livingAt(event)) {
    if (of[row] !== group || !state.rows.isAllocated(row, event)) continue;
    if (bytes < state.rows.size[row]) return row;
    bytes -= state.rows.size[row];
  }
  return null;
}
