// All heads of all layers, small: what stands out is chosen with a click.

import { make, paint } from "./elements.js";
import { matrixOf } from "./weights.js";

export function headGrid(host, onChoose) {
  let buttons = [];

  function show(bytes, record, color) {
    buttons = [];
    const rows = record.layers.map((layer, at) => {
      const row = record.heads.map((head, place) => {
        const canvas = make("canvas", { "aria-hidden": "true" });
        paint(canvas, matrixOf(bytes, record, at, place), color);
        const { monotonicity, entropy } = record.measures[at][place];
        const told = [
          monotonicity === null ? null : `monotonicity ${monotonicity.toFixed(2)}`,
          entropy === null ? null : `entropy ${entropy.toFixed(2)} bits`,
        ].filter((text) => text !== null);
        const button = make(
          "button",
          { type: "button", className: "head" },
          canvas,
          make("span", {}, `layer ${layer}, head ${head}`),
          make("small", {}, told.join(", ")),
        );
        button.addEventListener("click", () => onChoose(at, place));
        buttons.push({ button, layer: at, head: place });
        return button;
      });
      return make("div", { className: "heads-row" }, ...row);
    });
    host.replaceChildren(...rows);
  }

  function mark(layer, head) {
    for (const one of buttons) {
      const chosen = one.layer === layer && one.head === head;
      one.button.setAttribute("aria-pressed", String(chosen));
    }
  }
  return { show, mark };
}
