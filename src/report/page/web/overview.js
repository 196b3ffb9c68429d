// The whole run in a strip, with a frame around what the timeline shows.
class Overview {
  constructor(state) {
    this.state = state;
    this.surface = new Surface("overview");
  }
  draw() {
    const {state} = this, context = this.surface.begin(), {axis, levels} = state;
    const width = Math.floor(this.surface.width - PLOT.left - PLOT.right), height = this.surface.height;
    if (width <= 0) return;
    const lows = new Uint32Array(width), highs = new Uint32Array(width);
    for (let c = 0; c < width; ++c) {
      lows[c] = axis.eventAt(c / width * axis.end());
      highs[c] = Math.max(lows[c], axis.eventAt((c + 1) / width * axis.end()) - 1);
    }
    const {max} = levels.sample(lows, highs, state.grouping);
    const top = Math.max(levels.peak().bytes, 1);
    context.fillStyle = Theme.line;
    for (let c = 0; c < width; ++c) {
      const h = max[c] / top * (height - 6);
      context.fillRect(PLOT.left + c, height - 2 - h, 1, h);
    }
    for (const oom of state.meta.ooms) {
      context.fillStyle = Theme.oom;
      context.fillRect(PLOT.left + axis.valueOf(oom.event) / axis.end() * width - 0.75, 2, 1.5, height - 4);
    }
    const from = PLOT.left + axis.from / axis.end() * width, to = PLOT.left + axis.to / axis.end() * width;
    context.fillStyle = Theme.ground;
    context.globalAlpha = 0.6;
    context.fillRect(PLOT.left, 0, from - PLOT.left, height);
    context.fillRect(to, 0, PLOT.left + width - to, height);
    context.globalAlpha = 1;
    context.strokeStyle = Theme.soft;
    context.strokeRect(crisp(from), 0.5, Math.max(3, to - from - 1), height - 1);
    context.fillStyle = Theme.soft;
    context.textAlign = "right";
    context.fillText(Words.say("overview.label"), PLOT.left - 8, height / 2);
  }
  valueAt(x) {
    const width = this.surface.width - PLOT.left - PLOT.right;
    return (x - PLOT.left) / width * this.state.axis.end();
  }
}
