// The weights as they travel, and what is read from them. No document here: Node tests this file.

/** Undo the packing: base64 around zlib around one byte a weight. */
export async function unpack(base64) {
  const packed = Uint8Array.from(atob(base64), (letter) => letter.charCodeAt(0));
  const stream = new Blob([packed]).stream().pipeThrough(new DecompressionStream("deflate"));
  return new Uint8Array(await new Response(stream).arrayBuffer());
}

/** One head's matrix, or the mean of a layer's heads (head = -1); layer and head are places. */
export function matrixOf(bytes, record, layer, head) {
  const rows = record.target.length;
  const columns = record.source.length;
  const size = rows * columns;
  const heads = record.heads.length;
  const cells = new Float32Array(size);
  const first = head < 0 ? 0 : head;
  const last = head < 0 ? heads - 1 : head;
  for (let at = first; at <= last; at += 1) {
    const begin = record.at + (layer * heads + at) * size;
    for (let cell = 0; cell < size; cell += 1) cells[cell] += bytes[begin + cell];
  }
  const scale = 255 * (last - first + 1);
  for (let cell = 0; cell < size; cell += 1) cells[cell] /= scale;
  return { rows, columns, cells };
}

/** How far each step moves without each position, one byte a cell as weights are. */
export function effectsOf(bytes, record, positions) {
  const [rows, columns] = [record.target.length, record.source.length];
  const cells = Float32Array.from(
    bytes.subarray(positions.at, positions.at + rows * columns),
    (byte) => byte / 255,
  );
  return { rows, columns, cells };
}

/** The word that a step puts first without a position; `own` where it stays the same. */
export function wordWithout(bytes, record, positions, row, column, own) {
  const [rows, columns] = [record.target.length, record.source.length];
  const code = bytes[positions.at + rows * columns + row * columns + column];
  if (code === 0) return own;
  return positions.words[code - 1] ?? "\u2026"; // one of more words than a byte can name
}

export function rowOf(matrix, row) {
  return matrix.cells.subarray(row * matrix.columns, (row + 1) * matrix.columns);
}

export function columnOf(matrix, column) {
  const found = new Float32Array(matrix.rows);
  for (let row = 0; row < matrix.rows; row += 1) {
    found[row] = matrix.cells[row * matrix.columns + column];
  }
  return found;
}

/** One matrix minus another of the same size: from -1 to 1. */
export function minus(one, other) {
  return { ...one, cells: one.cells.map((value, cell) => value - other.cells[cell]) };
}

/** Places of the largest values above zero, the largest first; the earlier of two equals. */
export function largest(values, count) {
  return [...values.keys()]
    .filter((place) => values[place] > 0)
    .sort((a, b) => values[b] - values[a] || a - b)
    .slice(0, count);
}

/** Every pair whose weight is at least `least`, as [row, column, weight]. */
export function linksAbove(matrix, least) {
  const found = [];
  for (let cell = 0; cell < matrix.cells.length; cell += 1) {
    const weight = matrix.cells[cell];
    // Half a quantum, so that a weight that was exactly the threshold is not lost to rounding.
    if (weight > 0 && weight >= least - 0.5 / 255) {
      found.push([Math.floor(cell / matrix.columns), cell % matrix.columns, weight]);
    }
  }
  return found;
}

export function sameTokens(one, other) {
  const same = (a, b) => a.length === b.length && a.every((token, at) => token === b[at]);
  return same(one.target, other.target) && same(one.source, other.source);
}

/** A weight for people: two digits, which is what one byte holds. */
export function shown(value) {
  return value.toFixed(2).replace("-", "\u2212");
}

/** A token that can be seen: spaces, empty tokens and control characters too. */
export function visible(token) {
  if (token === "") return "\u2205";
  return token.replace(/ /g, "\u2423").replace(/[\p{Cc}\p{Zl}\p{Zp}]/gu, "\ufffd");
}
