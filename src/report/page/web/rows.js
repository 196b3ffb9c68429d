// The allocations and segments as the page knows them: who lives at an event, sums by group.

const NEVER = 4294967295;

class Rows {
  constructor(meta, columns) {
    this.count = columns.address.length;
    this.address = columns.address;
    this.size = columns.size;
    this.requested = columns.requested;
    this.alloc = columns.alloc;
    this.initial = meta.initial_rows;  // so many lived before the first event
    this.stack = columns.stack;
    this.groups = {kind: columns.kind, stack: columns.stack_group};
    this.free = lifeEnds(columns.alloc, columns.held);
    this.completed = lifeEnds(this.free, columns.waits);
    this.latest = latestOfRuns(this.completed);
    this.at = rowOfEvent(this, meta.events);
  }

  isInitial(row) { return row < this.initial; }
  isAllocated(row, event) {
    return (row < this.initial || this.alloc[row] <= event) && this.free[row] > event;
  }

  // Rows that hold memory after `event`, allocated or waiting for other streams, in the order of
  // their allocation. Runs of rows that are all gone are passed over.
  livingAt(event) {
    const out = [];
    for (let run = 0; run * RUN < this.count; ++run) {
      if (this.latest[run] <= event) continue;
      const end = Math.min(this.count, (run + 1) * RUN);
      for (let row = run * RUN; row < end; ++row) {
        if (row >= this.initial && this.alloc[row] > event) return out;
        if (this.completed[row] > event) out.push(row);
      }
    }
    return out;
  }
}

const RUN = 256;

function lifeEnds(begins, lengths) {
  const out = new Uint32Array(begins.length);
  for (let i = 0; i < out.length; ++i)
    out[i] = lengths[i] === 0 || begins[i] === NEVER ? NEVER : begins[i] + lengths[i] - 1;
  return out;
}

function latestOfRuns(ends) {
  const out = new Uint32Array(Math.ceil(ends.length / RUN));
  for (let i = 0; i < ends.length; ++i)
    if (ends[i] > out[(i / RUN) | 0]) out[(i / RUN) | 0] = ends[i];
  return out;
}

// For each event row + 1 if the row begins there, -(row + 1) if it ends, else 0.
function rowOfEvent(rows, events) {
  const out = new Int32Array(events);
  for (let row = 0; row < rows.count; ++row) {
    if (row >= rows.initial) out[rows.alloc[row]] = row + 1;
    else if (rows.free[row] === 0) continue;  // waited already when the trace began
    if (rows.free[row] < events) out[rows.free[row]] = -(row + 1);
  }
  return out;
}

class Segments {
  constructor(meta, columns) {
    this.address = columns.segment_address;
    this.size = columns.segment_size;
    this.from = columns.segment_from;
    this.to = columns.segment_to;
    this.stream = columns.segment_stream;
    this.pool = columns.segment_pool;
    this.flags = columns.segment_flags;  // 1: small pool, 2: expandable
    this.initial = meta.initial_segments;
    this.streams = meta.streams;
  }

  // By address; adjoining pages of one expandable segment are one.
  heldAt(event) {
    const held = [];
    for (let i = 0; i < this.address.length; ++i)
      if ((i < this.initial || this.from[i] <= event) && this.to[i] > event) held.push(i);
    held.sort((a, b) => this.address[a] - this.address[b]);
    const out = [];
    for (const i of held) {
      const last = out[out.length - 1];
      const expandable = (this.flags[i] & 2) !== 0;
      if (last && expandable && last.expandable && last.stream === this.stream[i] &&
          last.pool === this.pool[i] && last.address + last.size === this.address[i]) {
        last.size += this.size[i];
      } else {
        out.push({address: this.address[i], size: this.size[i], stream: this.stream[i],
                  pool: this.pool[i], small: (this.flags[i] & 1) !== 0, expandable});
      }
    }
    return out;
  }
}
