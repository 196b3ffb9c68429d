// The stacked areas of the timeline with their seams, names, outline and matches of a search. Heights
// are bytes per column of pixels.

class Areas {
  constructor(timeline) {
    this.timeline = timeline;
    this.labels = [];
  }

  y(bytes) { return this.timeline.y(bytes); }

  draw(context) {
    const {state, columns} = this.timeline, {max, parts, groups} = columns, width = max.length;
    const matched = this.timeline.matched;
    const below = new Float64Array(width);
    this.labels = [];
    for (let g = 0; g < groups; ++g) {
      const lower = below.slice();
      for (let c = 0; c < width; ++c) below[c] += parts[c * groups + g];
      context.beginPath();
      this.trace(context, below, 0, width, 1);
      this.trace(context, lower, width - 1, -1, -1);
      context.closePath();
      const muted = matched || (state.highlight !== null && state.highlight !== g);
      context.globalAlpha = muted ? 0.28 : 1;
      context.fillStyle = Theme.groups[state.colourOf(g)];
      context.fill();
      context.globalAlpha = 1;
      this.drawSeam(context, below);
      if (!muted) this.placeLabel(context, lower, below, g);
    }
    this.drawTotal(context, below);
    if (matched) this.drawMatches(context, matched);
    for (const {text, x, y, width: wide} of this.labels) {
      context.textAlign = "center";
      context.fillStyle = Theme.ink;
      context.fillText(fitted(context, text, wide), x, y);
    }
  }

  // Between areas: neighbours are told apart without colour. Level parts only, since an upright seam
  // would hide an area of one pixel's width.
  drawSeam(context, heights) {
    context.strokeStyle = Theme.ground;
    context.lineWidth = 0.75;
    context.beginPath();
    let before = NaN;
    for (let c = 0; c < heights.length; ++c) {
      const y = this.y(heights[c]);
      if (!(Math.abs(y - before) < 1)) context.moveTo(PLOT.left + c, y);
      else context.lineTo(PLOT.left + c, y);
      context.lineTo(PLOT.left + c + 1, y);
      before = y;
    }
    context.stroke();
    context.lineWidth = 1;
  }

  // The edge of all areas: a peak of one pixel's width stays visible.
  drawTotal(context, heights) {
    context.strokeStyle = Theme.total;
    context.beginPath();
    this.trace(context, heights, 0, heights.length, 1);
    context.stroke();
  }

  // Along the tops of columns, as steps.
  trace(context, heights, from, to, by) {
    for (let c = from; c !== to; c += by) {
      const y = this.y(heights[c]);
      context.lineTo(PLOT.left + c + (by > 0 ? 0 : 1), y);
      context.lineTo(PLOT.left + c + (by > 0 ? 1 : 0), y);
    }
  }

  // The name inside the area, where a box of 15 pixels' height is widest.
  placeLabel(context, lower, upper, group) {
    const need = 15;
    let best = null, from = 0, floor = -Infinity, ceiling = Infinity;
    const close = (to) => {
      if (to - from > 70 && (!best || to - from > best.to - best.from))
        best = {from, to, middle: (floor + ceiling) / 2};
    };
    for (let c = 0; c < upper.length; ++c) {
      const top = this.y(upper[c]), bottom = this.y(lower[c]);
      const nextCeiling = Math.min(ceiling, bottom), nextFloor = Math.max(floor, top);
      if (nextCeiling - nextFloor >= need) {
        ceiling = nextCeiling;
        floor = nextFloor;
        continue;
      }
      close(c);
      from = c;
      const fits = bottom - top >= need;
      floor = fits ? top : -Infinity;
      ceiling = fits ? bottom : Infinity;
      if (!fits) { from = c + 1; }
    }
    close(upper.length);
    if (best && Number.isFinite(best.middle))
      this.labels.push({text: this.timeline.state.nameOf(group), x: PLOT.left + (best.from + best.to) / 2,
                        y: best.middle, width: best.to - best.from - 10});
  }

  drawMatches(context, matched) {
    const {parts} = matched, width = matched.max.length;
    const heights = new Float64Array(width);
    for (let c = 0; c < width; ++c) heights[c] = parts[2 * c + 1];
    context.beginPath();
    context.moveTo(PLOT.left, this.y(0));
    this.trace(context, heights, 0, width, 1);
    context.lineTo(PLOT.left + width, this.y(0));
    context.closePath();
    context.globalAlpha = 0.35;
    context.fillStyle = Theme.match;
    context.fill();
    context.globalAlpha = 1;
    context.fillStyle = Theme.hatch(context, Theme.match, 6);
    context.fill();
    context.strokeStyle = Theme.match;
    context.stroke();
  }

  // The lowest value of each column, where it differs from the highest.
  drawLowest(context) {
    const {max, min} = this.timeline.columns;
    context.strokeStyle = Theme.ink;
    context.globalAlpha = 0.4;
    context.beginPath();
    let drawing = false;
    for (let c = 0; c < max.length; ++c) {
      if (this.y(min[c]) - this.y(max[c]) < 1.5) { drawing = false; continue; }
      const y = this.y(min[c]);
      if (!drawing) context.moveTo(PLOT.left + c, y);
      context.lineTo(PLOT.left + c + 1, y);
      drawing = true;
    }
    context.stroke();
    context.globalAlpha = 1;
  }
}
