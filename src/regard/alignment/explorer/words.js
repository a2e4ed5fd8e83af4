// Both sentences as running text: a word that is pointed at shades the other side's words.

import { css, inkOn } from "./colors.js";
import { make } from "./elements.js";
import { columnOf, rowOf, visible } from "./weights.js";

export function sentences(host, onPoint) {
  const sides = {};
  for (const side of ["target", "source"]) {
    const list = make("p", { className: "words", dir: "auto" });
    list.addEventListener("pointerover", (event) => {
      const at = event.target.dataset.at;
      if (at === undefined) return;
      if (side === "target") onPoint(Number(at), null, "pointer");
      else onPoint(null, Number(at), "pointer");
    });
    list.addEventListener("click", (event) => {
      const at = event.target.dataset.at;
      if (at === undefined) return;
      if (side === "target") onPoint(Number(at), null, "click");
      else onPoint(null, Number(at), "click");
    });
    list.addEventListener("pointerleave", () => onPoint(null, null, "pointer"));
    host.append(make("h2", { className: "small" }, side === "target" ? "Target" : "Source"), list);
    sides[side] = { list, words: [] };
  }
  let matrix = null;
  let color = null;

  function show(view) {
    ({ matrix, color } = view);
    for (const side of ["target", "source"]) {
      sides[side].words = view[side].map((token, at) =>
        make("span", { className: "word", "data-at": at }, visible(token)),
      );
      sides[side].list.replaceChildren(
        ...sides[side].words.flatMap((word) => [word, document.createTextNode(" ")]),
      );
    }
  }

  function shade(side, values) {
    sides[side].words.forEach((word, at) => {
      if (values === null) word.removeAttribute("style");
      else {
        const rgb = color(values[at]);
        word.style.background = css(rgb);
        word.style.color = inkOn(rgb);
      }
    });
  }

  function mark(row, column) {
    shade("source", row === null ? null : rowOf(matrix, row));
    shade("target", row === null && column !== null ? columnOf(matrix, column) : null);
    for (const [side, at] of [
      ["target", row],
      ["source", column],
    ]) {
      sides[side].words.forEach((word, place) => word.classList.toggle("on", place === at));
    }
  }
  return { show, mark };
}
