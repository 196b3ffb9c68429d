// The segment map: what the allocator held from the driver at one moment. Segments lie in the order
// of their addresses, one after the other over the lines of the map, all on one scale; a segment
// longer than the rest of a line goes on in the next. Filled: blocks; hollow: free.

const MAP = {line: 19, bar: 13, gap: 4, margin: 8};

class SegmentMap {
  constructor(state) {
    this.state = state;
    this.surface = new Surface("map");
    this.zoom = 1;     // lines grow by this factor
    this.scroll = 0;   // in pixels
    this.event = -1;
    this.segments = [];
    this.blocks = [];  // rows by address
    this.pieces = [];  // of segments on lines
  }

  // Who is where at the moment. Done once per moment.
  load(event) {
    const {rows, segments} = this.state;
    if (!rows || event === this.event) return;
    this.event = event;
    this.segments = segments.heldAt(event);
    this.blocks = rows.livingAt(event).sort((a, b) => rows.address[a] - rows.address[b]);
    this.addresses = Float64Array.from(this.blocks, (row) => rows.address[row]);
    this.totals = this.sum();
  }

  sum() {
    const {rows} = this.state, out = {reserved: 0, allocated: 0, pending: 0, free: 0, pieces: 0, largest: 0};
    for (const segment of this.segments) {
      out.reserved += segment.size;
      for (const gap of this.gapsOf(segment)) {
        out.free += gap.size;
        out.pieces += 1;
        out.largest = Math.max(out.largest, gap.size);
      }
    }
    for (const row of this.blocks) {
      if (rows.isAllocated(row, this.event)) out.allocated += rows.size[row];
      else out.pending += rows.size[row];
    }
    return out;
  }

  // Blocks of a segment: [first, end) of this.blocks.
  blocksOf(segment) {
    const first = upperBound(this.addresses, segment.address - 1);
    return [first, upperBound(this.addresses, segment.address + segment.size - 1)];
  }

  gapsOf(segment) {
    const {rows} = this.state, out = [], [first, end] = this.blocksOf(segment);
    let at = segment.address;
    for (let i = first; i < end; ++i) {
      const address = this.addresses[i];
      if (address > at) out.push({address: at, size: address - at});
      at = Math.max(at, address + rows.size[this.blocks[i]]);
    }
    const last = segment.address + segment.size;
    if (at < last) out.push({address: at, size: last - at});
    return out;
  }

  // Bytes per pixel: the least power of two, or half as much again, at which all fits.
  fit(width, lines) {
    let scale = 512;
    while (this.flow(width, scale, false) > lines && scale < 2 ** 50) scale *= Number.isInteger(Math.log2(scale)) ? 1.5 : 4 / 3;
    return scale;
  }

  // Lays the segments out; the number of lines.
  flow(width, scale, keep) {
    let x = 0, line = 0;
    if (keep) this.pieces = [];
    this.segments.forEach((segment, index) => {
      let left = segment.size;
      const whole = Math.max(2, segment.size / scale);
      if (x > 0 && (x + Math.min(whole, 40) > width || (x + whole > width && whole <= width / 3))) { x = 0; ++line; }
      let begin = segment.address;
      while (left > 0) {
        const room = Math.max(1, width - x);
        const part = Math.min(left, room * scale);
        const pixels = Math.max(2, part / scale);
        if (keep) this.pieces.push({index, line, x, width: pixels, begin, bytes: part,
                                    starts: begin === segment.address, ends: part === left});
        begin += part;
        left -= part;
        x += pixels;
        if (left > 0) { x = 0; ++line; }
      }
      x += MAP.gap;
    });
    return line + 1;
  }

  layout() {
    const width = this.surface.width - 2 * MAP.margin;
    const lines = Math.max(1, Math.floor((this.surface.height - 2 * MAP.margin) / MAP.line));
    const key = `${this.event} ${width} ${lines} ${this.zoom}`;
    if (key === this.key) return;
    this.key = key;
    this.scale = Math.max(64, this.fit(width, lines) / this.zoom);
    this.lines = this.flow(width, this.scale, true);
    const beyond = Math.max(0, this.lines * MAP.line + 2 * MAP.margin - this.surface.height);
    this.scroll = Math.max(0, Math.min(beyond, this.scroll));
    this.beyond = beyond;
  }

  draw() {
    const context = this.surface.begin();
    if (!this.state.rows) {
      context.fillStyle = Theme.soft;
      context.fillText(Words.say("map.loading"), 12, 20);
      return;
    }
    this.load(this.state.moment);
    this.layout();
    for (const piece of this.pieces) this.drawPiece(context, piece);
    if (this.segments.length === 0) {
      context.fillStyle = Theme.soft;
      context.fillText(Words.say("map.nothing"), 12, 20);
    }
    this.outline(context, this.state.hovered, Theme.ink);
    this.outline(context, this.state.chosen, Theme.moment);
    this.drawScroll(context);
  }

  top(line) { return MAP.margin + line * MAP.line - this.scroll; }

  drawPiece(context, piece) {
    const y = this.top(piece.line);
    if (y + MAP.bar < 0 || y > this.surface.height) return;
    const segment = this.segments[piece.index];
    const left = MAP.margin + piece.x;
    context.fillStyle = Theme.free;
    context.fillRect(left, y, piece.width, MAP.bar);
    this.drawBlocks(context, piece, segment, left, y);
    context.strokeStyle = Theme.soft;
    context.lineWidth = 1;
    context.beginPath();
    context.moveTo(left, y - 0.5);
    context.lineTo(left + piece.width, y - 0.5);
    context.moveTo(left, y + MAP.bar + 0.5);
    context.lineTo(left + piece.width, y + MAP.bar + 0.5);
    // Open ends: the segment goes on in another line.
    if (piece.starts) { context.moveTo(left - 0.5, y - 1); context.lineTo(left - 0.5, y + MAP.bar + 1); }
    if (piece.ends) { context.moveTo(left + piece.width + 0.5, y - 1); context.lineTo(left + piece.width + 0.5, y + MAP.bar + 1); }
    context.stroke();
  }

  drawBlocks(context, piece, segment, left, y) {
    const {rows, state} = {rows: this.state.rows, state: this.state};
    const of = rows.groups[state.grouping], end = piece.begin + piece.bytes;
    const [first, last] = this.blocksOf(segment);
    for (let i = first; i < last; ++i) {
      const row = this.blocks[i], from = Math.max(this.addresses[i], piece.begin);
      const to = Math.min(this.addresses[i] + rows.size[row], end);
      if (to <= from) continue;
      const x = left + (from - piece.begin) / this.scale, width = Math.max(0.5, (to - from) / this.scale);
      const muted = state.search.active && !state.search.matches(row) ||
        (state.highlight !== null && state.highlight !== of[row]);
      context.globalAlpha = muted ? 0.25 : 1;
      context.fillStyle = Theme.groups[state.colourOf(of[row])];
      // A seam of one pixel where there is room for it.
      context.fillRect(x, y, width >= 3 ? width - 1 : width, MAP.bar);
      context.globalAlpha = 1;
      if (!rows.isAllocated(row, this.event)) {
        context.fillStyle = Theme.hatch(context, Theme.ground, 4);
        context.fillRect(x, y, width, MAP.bar);
      } else if (state.search.active && !muted && width >= 2) {
        context.fillStyle = Theme.match;
        context.fillRect(x, y + MAP.bar - 3, width >= 3 ? width - 1 : width, 3);
      }
      if (width > 44 && !muted) this.drawName(context, row, x, y, width - 8);
    }
  }

  // As much of the name as there is room for: the size is never cut.
  drawName(context, row, x, y, room) {
    const {state} = this, size = sizeText(state.rows.size[row]);
    const frame = state.stacks ? state.stacks.best(state.rows.stack[row]) : null;
    const text = [frame ? `${size} ${frameText(frame)}` : size, frame ? `${size} ${frame.name}` : size, size]
      .find((t) => context.measureText(t).width <= room);
    if (!text) return;
    context.fillStyle = Theme.ink;
    context.textAlign = "left";
    context.fillText(text, x + 4, y + MAP.bar / 2 + 0.5);
  }

  // Places of a row on the map: one rectangle per line.
  placesOf(row) {
    const {rows} = this.state, out = [];
    if (row === null || this.blocks.length === 0) return out;
    const address = rows.address[row], end = address + rows.size[row];
    for (const piece of this.pieces) {
      const from = Math.max(address, piece.begin), to = Math.min(end, piece.begin + piece.bytes);
      if (to > from) out.push({x: MAP.margin + piece.x + (from - piece.begin) / this.scale, y: this.top(piece.line),
                               width: Math.max(1, (to - from) / this.scale), line: piece.line});
    }
    return out;
  }

  outline(context, row, colour) {
    if (row === null || this.indexOf(row) < 0) return;
    context.strokeStyle = colour;
    context.lineWidth = 2;
    for (const place of this.placesOf(row))
      context.strokeRect(place.x - 1, place.y - 1, place.width + 1, MAP.bar + 2);
    context.lineWidth = 1;
  }

  drawScroll(context) {
    if (this.beyond <= 0) return;
    const {height, width} = this.surface, all = height + this.beyond;
    context.fillStyle = Theme.soft;
    context.globalAlpha = 0.6;
    context.fillRect(width - 5, this.scroll / all * height, 4, Math.max(12, height * height / all));
    context.globalAlpha = 1;
  }

  // Where a row stands in this.blocks, or -1.
  indexOf(row) {
    if (this.blocks.length === 0) return -1;
    let i = upperBound(this.addresses, this.state.rows.address[row]) - 1;
    for (; i >= 0 && this.addresses[i] === this.state.rows.address[row]; --i)
      if (this.blocks[i] === row) return i;
    return -1;
  }

  // {segment, row} or {segment, gap} under a point, or null.
  hit(x, y) {
    const line = Math.floor((y - MAP.margin + this.scroll) / MAP.line);
    for (const piece of this.pieces) {
      if (piece.line !== line) continue;
      const left = MAP.margin + piece.x;
      if (x < left || x >= left + piece.width) continue;
      const segment = this.segments[piece.index];
      const address = piece.begin + Math.min(piece.bytes - 1, (x - left) * this.scale);
      return {segment, ...this.at(segment, address, this.scale)};
    }
    return null;
  }

  // Within a pixel several blocks may lie: the largest is meant.
  at(segment, address, reach) {
    const {rows} = this.state, [first, end] = this.blocksOf(segment);
    let best = null;
    for (let i = Math.max(first, upperBound(this.addresses, address) - 1); i < end && this.addresses[i] < address + reach; ++i) {
      const row = this.blocks[i];
      if (this.addresses[i] + rows.size[row] > address && (best === null || rows.size[row] > rows.size[best])) best = row;
    }
    if (best !== null) return {row: best, gap: null};
    const gap = this.gapsOf(segment).find((g) => address >= g.address && address < g.address + g.size);
    return {row: null, gap: gap || null};
  }

  scrollTo(row) {
    const place = this.placesOf(row)[0];
    if (!place) return;
    if (place.y < 0) this.scroll += place.y - MAP.margin;
    else if (place.y + MAP.line > this.surface.height) this.scroll += place.y + MAP.line + MAP.margin - this.surface.height;
    this.scroll = Math.max(0, Math.min(this.beyond, this.scroll));
  }

  title() {
    const t = this.totals;
    return Words.say("map.title", {event: countText(this.event), segments: countText(this.segments.length),
      blocks: countText(this.blocks.length), reserved: sizeText(t.reserved), allocated: sizeText(t.allocated),
      free: sizeText(t.free), pieces: countText(t.pieces), largest: sizeText(t.largest)});
  }
}
