// Stacks and their frames as texts.

class Stacks {
  constructor(columns) {
    this.texts = JSON.parse(columns.texts);
    this.name = columns.frame_name;
    this.file = columns.frame_file;
    this.line = columns.frame_line;
    this.begin = columns.stack_begin;  // one more than there are stacks
    this.frames = columns.stack_frame;
    this.count = this.begin.length - 1;
  }

  framesOf(stack) {
    const out = [];
    for (let i = this.begin[stack]; i < this.begin[stack + 1]; ++i) {
      const frame = this.frames[i];
      out.push({name: this.texts[this.name[frame]], file: this.texts[this.file[frame]], line: this.line[frame]});
    }
    return out;
  }

  // The innermost frame that is not torch's own, else the innermost of Python; null where there is none.
  best(stack) { return this.named(stack)[0] || null; }

  // Frames that say where a block comes from: Python's, and not torch's own if there are others.
  named(stack) {
    const frames = this.framesOf(stack).filter((frame) => !isNative(frame)), foreign = frames.filter((frame) => !isOwn(frame));
    return foreign.length ? foreign : frames;
  }

  // Function, file and line; of a library's function also of its caller. Stack 0: none recorded.
  title(stack) {
    const [inner, caller] = this.named(stack);
    if (!inner) return Words.say(stack === 0 ? "stack.unrecorded" : "stack.empty");
    return isInstalled(inner) && caller ? `${frameText(inner)} ‹ ${frameText(caller)}` : frameText(inner);
  }

  // 1 for each stack with a frame whose function or file contains the text.
  find(text) {
    const wanted = text.toLowerCase();
    const texts = this.texts.map((t) => t.toLowerCase().includes(wanted));
    const frames = Uint8Array.from(this.name, (name, i) =>
      texts[name] || texts[this.file[i]] || (`${baseName(this.texts[this.file[i]])}:${this.line[i]}`).toLowerCase().includes(wanted) ? 1 : 0);
    const out = new Uint8Array(this.count);
    for (let stack = 0; stack < this.count; ++stack)
      for (let i = this.begin[stack]; i < this.begin[stack + 1]; ++i)
        if (frames[this.frames[i]]) { out[stack] = 1; break; }
    return out;
  }
}

function baseName(path) { return path.slice(path.lastIndexOf("/") + 1); }

function frameText(frame) { return `${frame.name} ${baseName(frame.file)}:${frame.line}`; }

function isInstalled(frame) { return /(^|\/)(site|dist)-packages\//.test(frame.file); }

function isOwn(frame) { return /(^|\/)torch\//.test(frame.file) || isNative(frame); }

// As memory/snapshot/snapshot_finish.cc tells them.
function isNative(frame) {
  return /\.(cpp|cc|cxx|c|cu|cuh|h|hpp|hxx|inl|inc|tcc|S|so)$|\.so\.[^/]*$|(^|\/)python[0-9.]*$/.test(frame.file) || frame.file === "??" || frame.file === "";
}

// Which rows a search has found.
class Search {
  constructor(state) {
    this.state = state;
    this.text = "";
    this.active = false;
    this.found = null;  // by stack
  }
  matches(row) { return this.found !== null && this.found[this.state.rows.stack[row]] === 1; }

  set(text) {
    const {state} = this;
    this.text = text.trim();
    this.active = this.text !== "" && state.rows !== null && state.stacks !== null;
    if (!this.active) { this.found = null; return; }
    this.found = state.stacks.find(this.text);
    const {rows} = state, of = new Uint8Array(rows.count);
    this.rows = 0;
    for (let row = 0; row < rows.count; ++row)
      if (this.found[rows.stack[row]]) { of[row] = 1; ++this.rows; }
    state.levels.setGrouping("match", 2, of);
    this.stacks = this.found.reduce((sum, hit) => sum + hit, 0);
    this.peak = this.findPeak();
  }

  // When the found blocks together held most.
  findPeak() {
    const {levels, rows} = this.state, of = rows.groups.match;
    let now = 0, best = -1, event = 0;
    for (let row = 0; row < rows.initial; ++row) if (of[row] && rows.free[row] !== 0) now += rows.size[row];
    for (let e = 0; e < levels.events; ++e) {
      const change = rows.at[e];
      if (change > 0 && of[change - 1]) now += rows.size[change - 1];
      else if (change < 0 && of[-change - 1]) now -= rows.size[-change - 1];
      if (now > best) { best = now; event = e; }
    }
    return {bytes: Math.max(0, best), event};
  }

  // Found stacks by what they hold at an event: [{stack, bytes, blocks}], largest first.
  at(event) {
    const {rows} = this.state, sums = new Map();
    for (const row of rows.livingAt(event)) {
      if (!this.matches(row) || !rows.isAllocated(row, event)) continue;
      const sum = sums.get(rows.stack[row]) || {stack: rows.stack[row], bytes: 0, blocks: 0};
      sum.bytes += rows.size[row];
      sum.blocks += 1;
      sums.set(rows.stack[row], sum);
    }
    return [...sums.values()].sort((a, b) => b.bytes - a.bytes);
  }
}
