// The horizontal axis, by events or by time, and the ticks of both axes.

class Axis {
  constructor(events, times) {
    this.events = events;
    this.times = times;  // microseconds since the first event, never falling; null: not recorded
    this.mode = "event";
    this.from = 0;
    this.to = events;
  }

  end() { return this.mode === "event" ? this.events : this.times[this.events - 1] || 1; }
  smallest() { return Math.min(this.end(), this.mode === "event" ? 16 : 20); }

  // The last event that has begun at a place of the axis.
  eventAt(value) {
    const event = this.mode === "event" ? Math.floor(value) : upperBound(this.times, value) - 1;
    return Math.max(0, Math.min(this.events - 1, event));
  }
  valueOf(event) { return this.mode === "event" ? event : this.times[Math.min(event, this.events - 1)]; }

  setMode(mode) {
    if (mode === this.mode || (mode === "time" && !this.times)) return;
    const whole = this.from <= 0 && this.to >= this.end();
    const first = this.eventAt(this.from), last = this.eventAt(this.to);
    this.mode = mode;
    if (whole) this.show(0, this.end());
    else this.show(this.valueOf(first), this.valueOf(last));
  }

  show(from, to) {
    const span = Math.max(this.smallest(), Math.min(this.end(), to - from));
    const middle = (from + to) / 2;
    this.from = Math.max(0, Math.min(this.end() - span, middle - span / 2));
    this.to = this.from + span;
  }
  showAll() { this.show(0, this.end()); }
  zoom(factor, around) {
    const span = (this.to - this.from) / factor;
    const limited = Math.max(this.smallest(), Math.min(this.end(), span));
    const share = (around - this.from) / (this.to - this.from);
    const from = around - share * limited;
    this.show(from, from + limited);
  }
  pan(by) {
    const span = this.to - this.from;
    const from = Math.max(0, Math.min(this.end() - span, this.from + by));
    this.show(from, from + span);
  }
  // Moves so that an event is in sight.
  reveal(event) {
    const value = this.valueOf(event);
    if (value < this.from || value >= this.to) {
      const span = this.to - this.from;
      this.show(value - span / 2, value + span / 2);
    }
  }

  text(value, step = 0) {
    return this.mode === "event" ? countText(Math.round(value)) : timeText(value, step);
  }
}

// Multiples of 1, 2 or 5 times a power of ten.
function decimalTicks(from, to, count) {
  const rough = Math.max((to - from) / Math.max(1, count), 1e-9);
  const power = 10 ** Math.floor(Math.log10(rough));
  const step = [1, 2, 5, 10].map((m) => m * power).find((s) => s >= rough * 0.999);
  return {step, values: multiples(from, to, step)};
}

// Multiples of a power of two.
function binaryTicks(to, count) {
  const step = 2 ** Math.ceil(Math.log2(Math.max(512, to / Math.max(1, count))));
  return {step, values: multiples(0, to, step)};
}

function multiples(from, to, step) {
  const out = [];
  for (let i = Math.ceil(from / step); i * step <= to; ++i) out.push(i * step);
  return out;
}
