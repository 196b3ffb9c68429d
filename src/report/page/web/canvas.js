// What the canvases share: size in device pixels, colours of the style sheet, crisp lines.

class Surface {
  constructor(id) {
    this.canvas = document.getElementById(id);
    this.context = this.canvas.getContext("2d");
  }

  // Fits the drawing to the element; returns the context, cleared, in CSS pixels.
  begin() {
    const ratio = window.devicePixelRatio || 1;
    this.width = this.canvas.clientWidth;
    this.height = this.canvas.clientHeight;
    const w = Math.round(this.width * ratio), h = Math.round(this.height * ratio);
    if (this.canvas.width !== w || this.canvas.height !== h) {
      this.canvas.width = w;
      this.canvas.height = h;
    }
    this.context.setTransform(ratio, 0, 0, ratio, 0, 0);
    this.context.clearRect(0, 0, this.width, this.height);
    this.context.font = Theme.font;
    this.context.textBaseline = "middle";
    return this.context;
  }
}

const GROUP_COLOURS = 15;

// Colours and font of the style sheet, read again when the scheme changes.
const Theme = {
  font: "",
  read() {
    const style = getComputedStyle(document.documentElement);
    const of = (name) => style.getPropertyValue("--" + name).trim();
    for (const name of ["ground", "ink", "soft", "line", "faint", "reserved", "oom", "match", "moment", "free", "total"])
      this[name] = of(name);
    this.groups = [];
    for (let i = 0; i < GROUP_COLOURS; ++i) this.groups.push(of("g" + i));
    this.font = `11px ${of("sans")}`;
    this.mono = `11px ${of("mono")}`;
    this.hatches = {};
  },
  // Oblique lines: a second signal beside colour. `distance` tells kinds apart.
  hatch(context, colour, distance) {
    const key = colour + distance;
    if (this.hatches[key]) return this.hatches[key];
    const tile = document.createElement("canvas");
    tile.width = tile.height = distance;
    const lines = tile.getContext("2d");
    lines.strokeStyle = colour;
    lines.lineWidth = 1;
    lines.beginPath();
    for (const shift of [-distance, 0, distance]) {
      lines.moveTo(shift - 1, distance + 1);
      lines.lineTo(shift + distance + 1, -1);
    }
    lines.stroke();
    return this.hatches[key] = context.createPattern(tile, "repeat");
  },
};

// A line of one pixel lies between pixels' edges.
function crisp(value) { return Math.round(value) + 0.5; }

function verticalLine(context, x, top, bottom) {
  context.beginPath();
  context.moveTo(crisp(x), top);
  context.lineTo(crisp(x), bottom);
  context.stroke();
}

function horizontalLine(context, left, right, y) {
  context.beginPath();
  context.moveTo(left, crisp(y));
  context.lineTo(right, crisp(y));
  context.stroke();
}

// Text cut to a width, with an ellipsis; empty where not even three characters fit.
function fitted(context, text, width) {
  if (width < 8) return "";
  if (context.measureText(text).width <= width) return text;
  let low = 0, high = text.length;
  while (low < high) {
    const middle = (low + high + 1) >> 1;
    if (context.measureText(text.slice(0, middle) + "…").width <= width) low = middle; else high = middle - 1;
  }
  return low >= 3 ? text.slice(0, low) + "…" : "";
}

// Text with a rim of the ground's colour: readable over areas and lines without hiding them.
function label(context, text, x, y, colour, align = "left") {
  const width = context.measureText(text).width + 6;
  const left = align === "right" ? x - width : align === "center" ? x - width / 2 : x;
  context.textAlign = "left";
  context.strokeStyle = Theme.ground;
  context.lineWidth = 4;
  context.lineJoin = "round";
  context.strokeText(text, left + 3, y);
  context.lineWidth = 1;
  context.fillStyle = colour;
  context.fillText(text, left + 3, y);
  return {left, right: left + width};
}
