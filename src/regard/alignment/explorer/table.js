// The weights as a table, for screen readers and for who wants the numbers. It is made when it is
// opened: 40,000 cells are no cost to who never asks.

import { make } from "./elements.js";
import { shown, visible } from "./weights.js";

export function weightTable(details) {
  const host = make("div", { className: "scroll", tabIndex: 0, role: "region" });
  host.setAttribute("aria-label", "table of weights");
  details.append(host);
  let view = null;
  let made = null;

  function build() {
    if (!details.open || view === null || made === view) return;
    made = view;
    const { matrix, target, source, label } = view;
    const head = make("tr", {}, make("th", { scope: "col" }, "target \\ source"));
    head.append(...source.map((token) => make("th", { scope: "col" }, visible(token))));
    const body = make("tbody");
    target.forEach((token, row) => {
      const line = make("tr", {}, make("th", { scope: "row" }, visible(token)));
      for (let column = 0; column < matrix.columns; column += 1) {
        const value = matrix.cells[row * matrix.columns + column];
        line.append(make("td", {}, shown(value)));
      }
      body.append(line);
    });
    host.replaceChildren(
      make("table", {}, make("caption", {}, label), make("thead", {}, head), body),
    );
  }
  details.addEventListener("toggle", build);
  return {
    show(next) {
      view = next;
      build();
    },
  };
}
