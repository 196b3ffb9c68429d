// Start: the overview is drawn as soon as it is there, everything else follows.

function setLanguage(state, lang) {
  Words.lang = lang;
  document.documentElement.lang = lang === "zh" ? "zh-CN" : "en";
  for (const node of document.querySelectorAll("[data-text]")) node.textContent = Words.say(node.dataset.text);
  for (const node of document.querySelectorAll("[data-label]")) {
    node.setAttribute("aria-label", Words.say(node.dataset.label));
    node.title = Words.say(node.dataset.label);
  }
  document.getElementById("search").placeholder = Words.say("search.placeholder");
  state.timeline.surface.canvas.setAttribute("aria-label", Words.say("timeline.label"));
  state.map.surface.canvas.setAttribute("aria-label", Words.say("map.label"));
  document.getElementById("made").textContent = Words.say("made", {version: state.meta.version});
  drawFacts(state);
  drawKeys();
  state.panel.drawOom();
  state.redraw();
}

function drawFacts(state) {
  const {meta, axis} = state;
  document.getElementById("file").textContent = meta.file;
  const parts = [Words.say("facts.device", {device: meta.device, devices: meta.devices}), Words.say("facts.events", {events: countText(meta.events)})];
  if (axis.times) parts.push(timeText(axis.times[meta.events - 1]));
  if (meta.finished_steps) parts.push(Words.say("facts.steps", {steps: countText(meta.finished_steps)}));
  parts.push(Words.say("facts.peak", {allocated: sizeText(state.peak.bytes), reserved: sizeText(state.reservedPeak)}));
  parts.push(Words.say("facts.settings", {settings: meta.settings || Words.say("whatif.defaults")}));
  if (!meta.sizes_are_exact) parts.push(Words.say("facts.rounded"));
  document.getElementById("facts").textContent = parts.join(" · ");
}

function listenButtons(state) {
  const {axis} = state;
  document.body.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const {grouping, axis: mode, zoom, jump, lang} = button.dataset;
    if (grouping) state.setGrouping(grouping);
    if (mode) axis.setMode(mode);
    if (zoom === "all") axis.showAll();
    if (zoom === "in" || zoom === "out") axis.zoom(zoom === "in" ? 2 : 0.5, axis.valueOf(state.moment));
    if (jump === "peak") state.setMoment(state.peak.event);
    if (jump === "oom" && state.meta.ooms.length) state.setMoment(state.meta.ooms[0].event);
    if (lang) setLanguage(state, lang);
    if (button.id === "keys-button") toggleKeys();
    state.redraw();
  });
  let timer = 0;
  document.getElementById("search").addEventListener("input", (event) => {
    clearTimeout(timer);
    timer = setTimeout(() => setSearch(state, event.target.value), 120);
  });
  window.addEventListener("resize", () => state.redraw());
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", () => { Theme.read(); state.redraw(); });
}

function parsed() {
  if (document.readyState !== "loading") return Promise.resolve();
  return new Promise((resolve) => document.addEventListener("DOMContentLoaded", resolve, {once: true}));
}

async function start() {
  const meta = JSON.parse(document.getElementById("meta").textContent);
  Words.texts = meta.texts;
  Words.lang = meta.lang;
  Theme.read();
  const state = new State(meta);
  state.setOverview(await readChunk("overview", meta.chunks.overview));
  state.timeline = new Timeline(state);
  state.overview = new Overview(state);
  state.map = new SegmentMap(state);
  state.panel = new Panel(state);
  document.querySelector('[data-jump="oom"]').hidden = meta.ooms.length === 0;
  setLanguage(state, meta.lang);
  state.draw(true);
  performance.mark("first-paint");
  window.cufit = state;  // for tests and for curious people's consoles
  await parsed();
  state.setDetail(await readChunk("detail", meta.chunks.detail));
  drawFacts(state);
  state.panel.drawOom();
  document.querySelector('[data-axis="time"]').disabled = !state.axis.times;
  listenTimeline(state);
  listenOverview(state);
  listenMap(state);
  listenKeys(state);
  listenButtons(state);
  state.draw(true);
  performance.mark("interactive");
  state.stacks = new Stacks(await readChunk("stacks", meta.chunks.stacks));
  setSearch(state, document.getElementById("search").value);
  state.draw(true);
  performance.mark("complete");
}

start().catch((error) => {
  document.getElementById("facts").textContent = `${Words.say("failed")} ${error}`;
  throw error;
});
