// Texts in two languages, and numbers as people read them.

const Words = {
  lang: "en",
  texts: {},
  has(key) { return this.texts[this.lang][key] !== undefined; },
  // Fills {name} placeholders.
  say(key, values = {}) {
    const text = this.texts[this.lang][key];
    if (text === undefined) return key;
    return text.replace(/\{(\w+)\}/g, (whole, name) => name in values ? String(values[name]) : whole);
  },
};

const UNITS = ["B", "KiB", "MiB", "GiB", "TiB"];

function unitOf(bytes) {
  let unit = 0;
  while (unit + 1 < UNITS.length && Math.abs(bytes) >= 1024 ** (unit + 1)) ++unit;
  return unit;
}

// Four significant digits: "17.96 GiB", "512 B".
function sizeText(bytes) {
  const unit = unitOf(bytes);
  const value = bytes / 1024 ** unit;
  if (unit === 0 || Number.isInteger(value)) return `${value} ${UNITS[unit]}`;
  const digits = Math.abs(value) >= 1000 ? 0 : Math.abs(value) >= 100 ? 1 : 2;
  return `${value.toFixed(digits)} ${UNITS[unit]}`;
}

// "1,234,567 B", for where a rounded number would hide something.
function exactText(bytes) { return `${countText(bytes)} B`; }

function countText(number) { return String(number).replace(/\B(?=(\d{3})+(?!\d))/g, ","); }

// Microseconds as "1.250 s" or "350 µs"; `step` is the distance of two ticks, which decides digits.
function timeText(us, step = 0) {
  if (step === 0) step = Math.abs(us) >= 1e6 ? 1e3 : Math.abs(us) >= 1e3 ? 10 : 1;
  const inSeconds = Math.abs(us) >= 1e6 || step >= 1e6;
  const inMilliseconds = !inSeconds && (Math.abs(us) >= 1e3 || step >= 1e3);
  const unit = inSeconds ? 1e6 : inMilliseconds ? 1e3 : 1;
  const digits = Math.max(0, Math.min(6, Math.ceil(Math.log10(unit / step))));
  return `${(us / unit).toFixed(digits)} ${inSeconds ? "s" : inMilliseconds ? "ms" : "µs"}`;
}

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name === "class") node.className = value;
    else if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value !== undefined) node.setAttribute(name, value === true ? "" : value);
  }
  // Text only: nothing from the file is ever read as markup.
  for (const child of children) if (child !== null && child !== undefined) node.append(child);
  return node;
}
