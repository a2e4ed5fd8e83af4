// The heat map: the target down, the source across. The cells are one canvas that is drawn once;
// pointing at a cell only moves two frames, so that it costs the same at 5 tokens and at 200.

import { make, paint } from "./elements.js";
import { visible } from "./weights.js";

const LABEL = 14; // CSS pixels that a label needs
const WIDEST = 112; // of a label; longer tokens end in an ellipsis
const SMALLEST = 3;
const LARGEST = 34;

const MOVES = {
  ArrowUp: [-1, 0],
  ArrowDown: [1, 0],
  ArrowLeft: [0, -1],
  ArrowRight: [0, 1],
  PageUp: [-10, 0],
  PageDown: [10, 0],
};

/** `onPoint(row, column, by)`: by is "pointer", "click" or "key"; both null when it leaves. */
export function heatMap(host, onPoint) {
  const canvas = make("canvas");
  const rowFrame = make("div", { className: "frame" });
  const columnFrame = make("div", { className: "frame" });
  const cells = make("div", { className: "cells" }, canvas, rowFrame, columnFrame);
  const rows = make("div", { className: "labels rows" });
  const columns = make("div", { className: "labels columns" });
  const grid = make("div", { className: "grid" }, make("div"), columns, rows, cells);
  const title = make("p", { className: "map-title" });
  const box = make("div", {
    className: "map",
    tabIndex: 0,
    role: "application",
    "aria-roledescription": "heat map",
    "aria-describedby": "map-keys",
  });
  box.append(grid);
  host.append(title, box);

  let now = { rows: 0, columns: 0, side: 1, row: null, column: null };
  let names = { rows: [], columns: [] };

  function show({ matrix, target, source, color, label }) {
    title.textContent = label;
    box.setAttribute("aria-label", `${label}: ${matrix.rows} rows, ${matrix.columns} columns`);
    const texts = { rows: target.map(visible), columns: source.map(visible) };
    const wide = Object.fromEntries(
      Object.entries(texts).map(([axis, list]) => [axis, list.map((text) => width(text, box))]),
    );
    const left = Math.min(WIDEST, Math.max(...wide.rows)) + 8;
    const room = (box.clientWidth - left - 2) / matrix.columns;
    const tall = Math.max(SMALLEST + 1, 960 / matrix.rows);
    const side = Math.max(SMALLEST, Math.min(LARGEST, Math.floor(room), Math.floor(tall)));
    const upright = wide.columns.every((size) => size <= side - 2);
    const above = upright ? LABEL + 4 : Math.min(WIDEST, Math.max(...wide.columns)) + 8;
    grid.style.gridTemplateColumns = `${left}px ${side * matrix.columns}px`;
    grid.style.gridTemplateRows = `${above}px ${side * matrix.rows}px`;
    columns.classList.toggle("upright", upright);
    now = { ...now, rows: matrix.rows, columns: matrix.columns, side, row: null, column: null };
    names = {
      rows: nameTokens(rows, texts.rows, side, "top", false),
      columns: nameTokens(columns, texts.columns, side, "left", upright),
    };
    draw(canvas, matrix, color, side, getComputedStyle(box).getPropertyValue("--rule"));
    mark(null, null);
  }

  function nameTokens(axis, texts, side, edge, upright) {
    const every = Math.ceil(LABEL / side);
    const size = Math.max(side, LABEL);
    const made = texts.map((text, at) => {
      const label = make("span", { className: "label", title: text, dir: "auto" }, text);
      label.style[edge] = `${at * side + (side - size) / 2}px`;
      label.style[edge === "top" ? "height" : "width"] = `${size}px`;
      label.style.lineHeight = `${upright ? LABEL : size}px`;
      label.dataset.at = at;
      if (at % every) label.classList.add("thinned");
      return label;
    });
    axis.replaceChildren(...made);
    return made;
  }

  function mark(row, column) {
    for (const [axis, at, frame] of [
      ["rows", row, rowFrame],
      ["columns", column, columnFrame],
    ]) {
      const before = now[axis === "rows" ? "row" : "column"];
      names[axis][before]?.classList.remove("on");
      frame.hidden = at === null;
      if (at === null) continue;
      names[axis][at]?.classList.add("on");
      const start = `${at * now.side}px`;
      const thick = `${now.side}px`;
      Object.assign(
        frame.style,
        axis === "rows"
          ? { top: start, height: thick, left: "0", width: "100%" }
          : { left: start, width: thick, top: "0", height: "100%" },
      );
    }
    now.row = row;
    now.column = column;
  }

  function place(event) {
    const edge = cells.getBoundingClientRect();
    const at = (position, count) =>
      Math.max(0, Math.min(count - 1, Math.floor(position / now.side)));
    return [at(event.clientY - edge.top, now.rows), at(event.clientX - edge.left, now.columns)];
  }

  cells.addEventListener("pointermove", (event) => {
    const [row, column] = place(event);
    if (row !== now.row || column !== now.column) onPoint(row, column, "pointer");
  });
  cells.addEventListener("click", (event) => onPoint(...place(event), "click"));
  rows.addEventListener("pointerover", (event) => {
    if (event.target.dataset.at) onPoint(Number(event.target.dataset.at), null, "pointer");
  });
  columns.addEventListener("pointerover", (event) => {
    if (event.target.dataset.at) onPoint(null, Number(event.target.dataset.at), "pointer");
  });
  grid.addEventListener("pointerleave", () => onPoint(null, null, "pointer"));
  box.addEventListener("keydown", (event) => {
    if (event.altKey || event.ctrlKey || event.metaKey) return;
    let row = now.row ?? 0;
    let column = now.column ?? 0;
    if (event.key === "Escape") {
      onPoint(null, null, "key");
      return;
    }
    if (event.key === "Home") column = 0;
    else if (event.key === "End") column = now.columns - 1;
    else if (!(event.key in MOVES)) return;
    else if (now.row !== null || now.column !== null) {
      row = Math.max(0, Math.min(now.rows - 1, row + MOVES[event.key][0]));
      column = Math.max(0, Math.min(now.columns - 1, column + MOVES[event.key][1]));
    }
    event.preventDefault();
    onPoint(row, column, "key");
  });
  return { show, mark, element: box };
}

function draw(canvas, matrix, color, side, rule) {
  const small = document.createElement("canvas");
  paint(small, matrix, color);
  const sharp = window.devicePixelRatio || 1;
  canvas.width = Math.round(matrix.columns * side * sharp);
  canvas.height = Math.round(matrix.rows * side * sharp);
  canvas.style.width = `${matrix.columns * side}px`;
  canvas.style.height = `${matrix.rows * side}px`;
  const context = canvas.getContext("2d");
  context.imageSmoothingEnabled = false;
  context.drawImage(small, 0, 0, canvas.width, canvas.height);
  if (side < 8) return;
  context.strokeStyle = rule;
  context.lineWidth = 1;
  context.beginPath();
  for (let row = 1; row < matrix.rows; row += 1) {
    const at = Math.round(row * side * sharp) + 0.5;
    context.moveTo(0, at);
    context.lineTo(canvas.width, at);
  }
  for (let column = 1; column < matrix.columns; column += 1) {
    const at = Math.round(column * side * sharp) + 0.5;
    context.moveTo(at, 0);
    context.lineTo(at, canvas.height);
  }
  context.stroke();
}

let ruler = null;

function width(text, element) {
  ruler ??= document.createElement("canvas").getContext("2d");
  ruler.font = `12px ${getComputedStyle(element).fontFamily}`;
  return ruler.measureText(text).width;
}
