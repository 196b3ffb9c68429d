// Keys. On the map, arrows go from block to block; everywhere else they move the moment.

const KEY_HELP = ["move", "change", "pan", "zoom", "all", "ends", "peak", "oom", "search", "next", "grouping", "axis", "map", "escape"];

function listenKeys(state) {
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.altKey || event.metaKey) return;
    const typing = event.target.tagName === "INPUT" && event.target.type === "search";
    if (typing) {
      if (event.key === "Escape" || event.key === "Enter") { event.target.blur(); state.timeline.surface.canvas.focus(); }
      if (event.key === "Escape") setSearch(state, "");
      return;
    }
    const onMap = document.activeElement === state.map.surface.canvas;
    if (onMap ? mapKey(state, event) || anyKey(state, event) : anyKey(state, event)) event.preventDefault();
  });
}

function anyKey(state, event) {
  const {axis, moment} = state, span = axis.to - axis.from;
  const forward = event.key === "ArrowRight" ? 1 : -1;
  switch (event.key) {
    case "ArrowLeft":
    case "ArrowRight":
      if (event.shiftKey) state.setMoment(nextChange(state, moment, forward));
      else state.setMoment(onePixelOn(state, forward));
      return true;
    case "ArrowUp": case "+": case "=": axis.zoom(2, axis.valueOf(moment)); break;
    case "ArrowDown": case "-": case "_": axis.zoom(0.5, axis.valueOf(moment)); break;
    case "PageUp": axis.pan(-span / 2); break;
    case "PageDown": axis.pan(span / 2); break;
    case "Home": axis.showAll(); break;
    case "End": state.setMoment(state.meta.events - 1); return true;
    case "p": state.setMoment(state.peak.event); return true;
    case "o": if (state.meta.ooms.length) state.setMoment(state.meta.ooms[0].event); return true;
    case "n": if (state.search.active) state.setMoment(state.search.peak.event); return true;
    case "g": state.setGrouping(state.grouping === "kind" ? "stack" : "kind"); return true;
    case "t": axis.setMode(axis.mode === "event" ? "time" : "event"); break;
    case "/": document.getElementById("search").focus(); document.getElementById("search").select(); return true;
    case "?": toggleKeys(); return true;
    case "Escape": Tip.hide(); state.choose(null); return true;
    default: return false;
  }
  state.redraw();
  return true;
}

// The moment a pixel further, one event at least.
function onePixelOn(state, forward) {
  const {axis, timeline, moment} = state;
  const value = axis.valueOf(moment) + forward * (axis.to - axis.from) / timeline.plotWidth();
  const event = axis.eventAt(value);
  return forward > 0 ? Math.max(moment + 1, event) : Math.min(moment - 1, event);
}

// The next event that changes what is allocated.
function nextChange(state, event, forward) {
  if (!state.rows) return event + forward;
  let at = event + forward;
  while (at > 0 && at < state.meta.events - 1 && state.rows.at[at] === 0) at += forward;
  return at;
}

function mapKey(state, event) {
  const {map} = state;
  switch (event.key) {
    case "ArrowLeft": chooseNeighbour(state, -1); return true;
    case "ArrowRight": chooseNeighbour(state, 1); return true;
    case "ArrowUp": chooseBelow(state, -1); return true;
    case "ArrowDown": chooseBelow(state, 1); return true;
    case "+": case "=": zoomMap(state, 2); return true;
    case "-": case "_": zoomMap(state, 0.5); return true;
    case "Home": map.zoom = 1; map.scroll = 0; state.redraw(); return true;
    default: return false;
  }
}

function chooseNeighbour(state, by) {
  const {blocks} = state.map;
  if (blocks.length === 0) return;
  const at = state.chosen === null ? -1 : state.map.indexOf(state.chosen);
  state.choose(blocks[Math.max(0, Math.min(blocks.length - 1, at < 0 ? 0 : at + by))]);
}

function chooseBelow(state, by) {
  const {map} = state, from = map.placesOf(state.chosen)[0];
  if (!from) { chooseNeighbour(state, 1); return; }
  const hit = map.hit(from.x + from.width / 2, from.y + by * MAP.line + MAP.bar / 2);
  if (hit && hit.row !== null) state.choose(hit.row); else chooseNeighbour(state, by);
}

function toggleKeys() {
  const box = document.getElementById("keys");
  box.hidden = !box.hidden;
  document.getElementById("keys-button").setAttribute("aria-expanded", !box.hidden);
}

function drawKeys() {
  const list = element("dl");
  for (const key of KEY_HELP) {
    const [keys, meaning] = Words.say("keys." + key).split(": ");
    list.append(element("dt", {}, keys), element("dd", {}, meaning));
  }
  document.getElementById("keys").replaceChildren(list);
}

function setSearch(state, text) {
  const input = document.getElementById("search");
  if (input.value !== text) input.value = text;
  state.search.set(text);
  state.redraw();
}
