// Mouse on the three canvases.

function place(canvas, event) {
  const box = canvas.getBoundingClientRect();
  return {x: event.clientX - box.left, y: event.clientY - box.top};
}

const Tip = {
  show(lines, event) {
    const tip = document.getElementById("tip");
    tip.replaceChildren(...lines.map((line) => element("div", {}, line)));
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    const right = event.clientX + 16 + box.width > window.innerWidth;
    tip.style.left = `${Math.max(4, right ? event.clientX - 12 - box.width : event.clientX + 16)}px`;
    tip.style.top = `${Math.max(4, Math.min(event.clientY + 14, window.innerHeight - box.height - 4))}px`;
  },
  hide() { document.getElementById("tip").hidden = true; },
};

function timelineTip(state, hit) {
  const lines = [state.panel.when(hit.event)];
  lines.push(Words.say("tip.allocated", {max: sizeText(hit.max)}) +
    (hit.high > hit.low && hit.min < hit.max ? Words.say("tip.range", {events: countText(hit.high - hit.low + 1), min: sizeText(hit.min)}) : ""));
  lines.push(Words.say("tip.reserved", {reserved: sizeText(state.reserved.valueAt(hit.event))}));
  if (hit.group !== null) lines.push(state.nameOf(hit.group));
  if (hit.row !== null) lines.push(...blockLines(state, hit.row));
  return lines;
}

// A block and the first of its frames; the panel has all of them.
function blockLines(state, row) {
  const lines = [sizeText(state.rows.size[row])];
  if (state.stacks)
    for (const frame of state.stacks.named(state.rows.stack[row]).slice(0, 5)) lines.push(`  ${frameText(frame)}`);
  return lines;
}

function listenTimeline(state) {
  const {canvas} = state.timeline.surface, {timeline, axis} = state;
  let down = null;
  canvas.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    down = {...place(canvas, event), moved: false, select: event.shiftKey, from: axis.from, to: axis.to};
    canvas.setPointerCapture(event.pointerId);
  });
  canvas.addEventListener("pointermove", (event) => {
    const at = place(canvas, event);
    if (!down) {
      const hit = timeline.hit(at.x, at.y);
      if (!hit) { Tip.hide(); state.hover(null); return; }
      Tip.show(timelineTip(state, hit), event);
      state.hover(hit.row);
      return;
    }
    if (!down.moved && Math.abs(at.x - down.x) < 4) return;
    down.moved = true;
    Tip.hide();
    if (down.select) {
      state.dragged = {from: down.x, to: at.x};
    } else {
      const scale = (down.to - down.from) / timeline.plotWidth();
      axis.show(down.from, down.to);
      axis.pan((down.x - at.x) * scale);
    }
    state.redraw();
  });
  canvas.addEventListener("pointerup", (event) => {
    if (!down) return;
    const at = place(canvas, event), was = down;
    down = null;
    state.dragged = null;
    if (was.moved && was.select) {
      const a = timeline.valueAt(Math.min(was.x, at.x)), b = timeline.valueAt(Math.max(was.x, at.x));
      axis.show(a, b);
    } else if (!was.moved) {
      const hit = timeline.hit(at.x, at.y);
      if (hit) { state.setMoment(hit.event, false); state.choose(hit.row); }
    }
    state.redraw();
  });
  canvas.addEventListener("pointerleave", () => { Tip.hide(); state.hover(null); });
  canvas.addEventListener("wheel", (event) => {
    event.preventDefault();
    const across = event.shiftKey ? event.deltaY : event.deltaX;
    if (Math.abs(across) > Math.abs(event.shiftKey ? 0 : event.deltaY))
      axis.pan(across / timeline.plotWidth() * (axis.to - axis.from));
    else axis.zoom(Math.exp(-Math.max(-300, Math.min(300, event.deltaY)) / 300), timeline.valueAt(place(canvas, event).x));
    state.redraw();
  }, {passive: false});
}

function listenOverview(state) {
  const {canvas} = state.overview.surface, {axis} = state;
  const center = (event) => {
    const value = state.overview.valueAt(place(canvas, event).x), half = (axis.to - axis.from) / 2;
    axis.show(value - half, value + half);
    state.redraw();
  };
  canvas.addEventListener("pointerdown", (event) => { canvas.setPointerCapture(event.pointerId); center(event); });
  canvas.addEventListener("pointermove", (event) => { if (event.buttons & 1) center(event); });
}

function listenMap(state) {
  const {canvas} = state.map.surface, {map} = state;
  const hitAt = (event) => { const at = place(canvas, event); return map.hit(at.x, at.y); };
  canvas.addEventListener("pointermove", (event) => {
    const hit = state.rows ? hitAt(event) : null;
    if (!hit) { Tip.hide(); state.hover(null); return; }
    const lines = hit.row !== null ? blockLines(state, hit.row) : hit.gap ? [Words.say("gap.tip", {size: sizeText(hit.gap.size)})] : [];
    lines.splice(1, 0, Words.say("segment.tip", {segment: state.panel.segmentText(hit.segment)}));
    Tip.show(lines, event);
    state.hover(hit.row, hit.gap ? hit : null);
  });
  canvas.addEventListener("pointerleave", () => { Tip.hide(); state.hover(null); });
  canvas.addEventListener("click", (event) => { const hit = hitAt(event); state.choose(hit ? hit.row : null); });
  canvas.addEventListener("wheel", (event) => {
    if (event.ctrlKey) {
      event.preventDefault();
      zoomMap(state, event.deltaY < 0 ? 2 : 0.5);
    } else if (map.beyond > 0) {
      event.preventDefault();
      map.scroll = Math.max(0, Math.min(map.beyond, map.scroll + event.deltaY));
      state.redrawCharts();
    }
  }, {passive: false});
}

function zoomMap(state, factor) {
  state.map.zoom = Math.max(1, Math.min(1024, state.map.zoom * factor));
  state.map.layout();
  const row = state.chosen !== null ? state.chosen : state.hovered;
  if (row !== null) state.map.scrollTo(row);
  state.redraw();
}
