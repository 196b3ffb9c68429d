// Allocated bytes over the events at any level of detail. A column of pixels shows the largest
// value of its events and the parts at that very event. Far out it comes from the buckets that
// cufit has prepared, near by from the changes themselves.

class Levels {
  constructor(meta, columns) {
    this.events = meta.events;
    this.fanOut = meta.fan_out;
    this.bucket = meta.bucket_events;
    this.levels = meta.level_sizes.map((size, i) => ({
      size, max: columns["max" + i], min: columns["min" + i], at: columns["at" + i]}));
    this.parts = {kind: columns.kind_parts};
    this.groups = {kind: meta.kinds.length, stack: meta.stack_groups.length + 1};
    this.rows = null;  // once the detail is there
    this.begins = {};  // by grouping: parts before each bucket
  }

  setDetail(rows, columns) {
    this.rows = rows;
    this.parts.stack = columns.stack_parts;
  }

  peak() {
    const top = this.levels[this.levels.length - 1];
    let best = 0;
    for (let i = 1; i < top.size; ++i) if (top.max[i] > top.max[best]) best = i;
    return {event: top.at[best], bytes: top.max[best]};
  }

  // {max, at, min} over finest buckets [first, last].
  overBuckets(first, last) {
    const out = {max: -1, at: 0, min: Infinity};
    let level = 0;
    while (first <= last) {
      const {max, min, at} = this.levels[level];
      // Up while whole groups of the next level fit.
      const aligned = first % this.fanOut === 0 && first + this.fanOut - 1 <= last;
      if (aligned && level + 1 < this.levels.length) {
        const rest = (last + 1) % this.fanOut;
        for (let i = last - rest + 1; i <= last; ++i) join(out, max[i], min[i], at[i]);
        first /= this.fanOut;
        last = (last + 1 - rest) / this.fanOut - 1;
        ++level;
        continue;
      }
      join(out, max[first], min[first], at[first]);
      ++first;
    }
    return out;
  }

  // Parts of a grouping before each finest bucket, added up once.
  beginsOf(grouping) {
    if (this.begins[grouping]) return this.begins[grouping];
    const groups = this.groups[grouping], rows = this.rows, of = rows.groups[grouping];
    const buckets = this.levels[0].size;
    const out = new Float64Array(buckets * groups);
    const now = new Float64Array(groups);
    for (let row = 0; row < rows.initial; ++row)
      if (rows.free[row] !== 0) now[of[row]] += rows.size[row];
    for (let e = 0; e < this.events; ++e) {
      if (e % this.bucket === 0) out.set(now, e / this.bucket * groups);
      const change = rows.at[e];
      if (change > 0) now[of[change - 1]] += rows.size[change - 1];
      else if (change < 0) now[of[-change - 1]] -= rows.size[-change - 1];
    }
    return this.begins[grouping] = out;
  }

  // Parts of a grouping at the event `at` of each finest bucket; cufit has prepared those that need
  // no search.
  partsOf(grouping) {
    if (this.parts[grouping]) return this.parts[grouping];
    const groups = this.groups[grouping], walk = this.walk(grouping), at = this.levels[0].at;
    const out = new Float64Array(at.length * groups);
    for (let i = 0; i < at.length; ++i) {
      walk.goTo(at[i]);
      out.set(walk.now, i * groups);
    }
    return this.parts[grouping] = out;
  }

  // A grouping that the page makes: a group per row.
  setGrouping(name, groups, of) {
    this.groups[name] = groups;
    this.rows.groups[name] = of;
    delete this.parts[name];
    delete this.begins[name];
  }

  // A walk over single events: parts after the event where it stands.
  walk(grouping) { return new Walk(this, grouping); }

  // What is allocated after `event`, by group; null before the detail is there.
  partsAt(event, grouping) {
    if (!this.rows) return null;
    const walk = this.walk(grouping);
    walk.goTo(event);
    return walk.now.slice();
  }

  // For columns of events [lows[c], highs[c]]: {max, min, at, parts}. Without the detail, edges
  // are those of buckets.
  sample(lows, highs, grouping) {
    const width = lows.length, groups = this.groups[grouping];
    const out = {max: new Float64Array(width), min: new Float64Array(width),
                 at: new Uint32Array(width), parts: new Float64Array(width * groups), groups};
    const walk = this.rows ? this.walk(grouping) : null;
    const prepared = this.partsOf(grouping);
    for (let c = 0; c < width; ++c) {
      if (walk && highs[c] - lows[c] < 2 * this.bucket) {
        walk.column(lows[c], highs[c], out, c);
        continue;
      }
      const first = Math.floor(lows[c] / this.bucket);
      const last = highs[c] + 1 >= this.events
        ? this.levels[0].size - 1 : Math.max(first, Math.floor((highs[c] + 1) / this.bucket) - 1);
      const found = this.overBuckets(first, last);
      out.max[c] = found.max;
      out.min[c] = found.min;
      out.at[c] = found.at;
      const from = Math.floor(found.at / this.bucket) * groups;
      for (let g = 0; g < groups; ++g) out.parts[c * groups + g] = prepared[from + g];
    }
    return out;
  }
}

function join(out, max, min, at) {
  if (max > out.max) { out.max = max; out.at = at; }
  if (min < out.min) out.min = min;
}

class Walk {
  constructor(levels, grouping) {
    this.levels = levels;
    this.groups = levels.groups[grouping];
    this.of = levels.rows.groups[grouping];
    this.begins = levels.beginsOf(grouping);
    this.now = new Float64Array(this.groups);
    this.event = -1;  // nowhere yet
    this.total = 0;
  }

  step() {
    const rows = this.levels.rows;
    const change = rows.at[++this.event];
    if (change === 0) return;
    const row = change > 0 ? change - 1 : -change - 1;
    const bytes = change > 0 ? rows.size[row] : -rows.size[row];
    this.now[this.of[row]] += bytes;
    this.total += bytes;
  }

  goTo(event) {
    const bucket = Math.floor(event / this.levels.bucket);
    if (this.event < 0 || this.event > event || event - this.event > this.levels.bucket) {
      this.now.set(this.begins.subarray(bucket * this.groups, (bucket + 1) * this.groups));
      this.total = this.now.reduce((a, b) => a + b, 0);
      this.event = bucket * this.levels.bucket - 1;
    }
    while (this.event < event) this.step();
  }

  column(low, high, out, c) {
    this.goTo(low);
    let best = this.total, least = this.total, at = low;
    const parts = out.parts.subarray(c * this.groups, (c + 1) * this.groups);
    parts.set(this.now);
    while (this.event < high) {
      this.step();
      if (this.total > best) {
        best = this.total;
        at = this.event;
        parts.set(this.now);
      } else if (this.total < least) {
        least = this.total;
      }
    }
    out.max[c] = best;
    out.min[c] = least;
    out.at[c] = at;
  }
}

// A value that holds from one listed event to the next.
class StepSeries {
  constructor(events, bytes) {
    this.events = events;
    this.bytes = bytes;
  }
  indexAt(event) { return Math.max(0, upperBound(this.events, event) - 1); }
  valueAt(event) { return this.bytes[this.indexAt(event)]; }
  // Largest and smallest over events [low, high].
  over(low, high) {
    let i = this.indexAt(low);
    let max = this.bytes[i], min = max;
    for (++i; i < this.events.length && this.events[i] <= high; ++i) {
      if (this.bytes[i] > max) max = this.bytes[i];
      if (this.bytes[i] < min) min = this.bytes[i];
    }
    return {max, min, last: this.bytes[i - 1]};
  }
}

// The first index whose value is greater.
function upperBound(values, wanted) {
  let low = 0, high = values.length;
  while (low < high) {
    const middle = (low + high) >> 1;
    if (values[middle] <= wanted) low = middle + 1; else high = middle;
  }
  return low;
}
