// The links whose weight reaches the threshold, drawn between two columns of words.

import { linksAbove, visible } from "./weights.js";

const SVG = "http://www.w3.org/2000/svg";
const LINE = 20;
const WIDE = 440;
const LEFT = 160;

function node(tag, attributes, text) {
  const made = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(attributes)) made.setAttribute(name, value);
  if (text !== undefined) made.textContent = text;
  return made;
}

export function linkPicture(host) {
  const picture = node("svg", { role: "img", class: "links" });
  host.append(picture);
  let links = [];
  let words = { target: [], source: [] };

  function show({ matrix, target, source }, least) {
    const height = LINE * Math.max(target.length, source.length);
    picture.setAttribute("viewBox", `0 0 ${WIDE} ${height + 4}`);
    const found = linksAbove(matrix, least);
    const y = (list, at) => ((at + 0.5) * height) / list.length;
    links = found.map(([row, column, weight]) => {
      const [from, to] = [y(source, column), y(target, row)];
      const bend = `M${LEFT} ${from}C${LEFT + 60} ${from} ${WIDE - LEFT - 60} ${to}`;
      const line = node("path", {
        d: `${bend} ${WIDE - LEFT} ${to}`,
        "stroke-opacity": Math.max(0.15, weight).toFixed(2),
        "stroke-width": (0.8 + 2.4 * weight).toFixed(1),
      });
      return { row, column, line };
    });
    const column = (list, x, anchor) =>
      list.map((token, at) => {
        const text = visible(token);
        const cut = text.length > 20 ? `${text.slice(0, 19)}\u2026` : text;
        return node("text", { x, y: y(list, at) + 4, "text-anchor": anchor }, cut);
      });
    words = {
      source: column(source, LEFT - 6, "end"),
      target: column(target, WIDE - LEFT + 6, "start"),
    };
    picture.setAttribute(
      "aria-label",
      `${found.length} links: source words on the left, target words on the right`,
    );
    picture.replaceChildren(...links.map(({ line }) => line), ...words.source, ...words.target);
    return found.length;
  }

  function mark(row, column) {
    const on = (link) =>
      (row !== null && link.row === row && (column === null || link.column === column)) ||
      (row === null && column !== null && link.column === column);
    for (const link of links) link.line.classList.toggle("on", on(link));
    words.target.forEach((text, at) => text.classList.toggle("on", at === row));
    words.source.forEach((text, at) => text.classList.toggle("on", at === column));
  }
  return { show, mark };
}
