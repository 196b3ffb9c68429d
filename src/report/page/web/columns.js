// Reads the columns that report/page/page_columns.h writes: base64, raw deflate, byte planes.

function bytesOfBase64(text) {
  if (Uint8Array.fromBase64) return Uint8Array.fromBase64(text);
  const binary = atob(text);
  const bytes = new Uint8Array(binary.length);
  for (let i = 0; i < bytes.length; ++i) bytes[i] = binary.charCodeAt(i);
  return bytes;
}

async function inflate(bytes) {
  const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate-raw"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

// Planes of one 32-bit half of a column, joined. `at` is where the lowest plane begins.
function joinPlanes(bytes, at, count) {
  const out = new Uint32Array(count);
  const b = at + count, c = b + count, d = c + count;
  for (let i = 0; i < count; ++i)
    out[i] = bytes[at + i] | bytes[b + i] << 8 | bytes[c + i] << 16 | bytes[d + i] << 24;
  return out;
}

function sumUp32(values) {
  for (let i = 1; i < values.length; ++i) values[i] = values[i] + values[i - 1];  // wraps
  return values;
}

function join64(low, high, differences) {
  const out = new Float64Array(low.length);
  let sum = 0;
  for (let i = 0; i < low.length; ++i) {
    // A difference may be negative: the high half is signed.
    const value = (differences ? high[i] | 0 : high[i]) * 4294967296 + low[i];
    out[i] = differences ? (sum += value) : value;
  }
  return out;
}

function readColumn(bytes, at, column) {
  const count = column.count;
  if (column.type === "u8") return [bytes.subarray(at, at + count), count];
  if (column.type === "text")
    return [new TextDecoder().decode(bytes.subarray(at, at + count)), count];
  const low = joinPlanes(bytes, at, count);
  if (column.type === "u32") return [column.differences ? sumUp32(low) : low, 4 * count];
  const high = joinPlanes(bytes, at + 4 * count, count);
  return [join64(low, high, column.differences), 8 * count];
}

// {name: typed array or text}. The element is emptied: its text is not needed twice.
async function readChunk(id, directory) {
  const element = document.getElementById("chunk-" + id);
  const bytes = await inflate(bytesOfBase64(element.textContent.trim()));
  element.textContent = "";
  const columns = {};
  let at = 0;
  for (const column of directory) {
    const [values, size] = readColumn(bytes, at, column);
    columns[column.name] = values;
    at += size;
  }
  return columns;
}
