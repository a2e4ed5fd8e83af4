// What the model would have written with other weights, where the file says so.

import { make } from "./elements.js";
import { shown, visible } from "./weights.js";

const KINDS = {
  permute: ["Permute", "with each row's weights shuffled"],
  uniform: ["Make uniform", "with every row's weights made equal"],
  ablate: ["Ablate", "with the weights set to zero"],
};

export function changes(host) {
  const buttons = make("div", { className: "buttons", role: "group" });
  buttons.setAttribute("aria-label", "What if the weights were others?");
  const told = make("p", { role: "status" });
  const list = make("p", { className: "words", dir: "auto" });
  host.append(
    make("h2", {}, "What if the weights were others?"),
    buttons,
    told,
    list,
    make(
      "p",
      { className: "quiet" },
      "Each step is changed alone, the words before it being kept. ",
      "The picture above keeps showing the model's own weights.",
    ),
  );
  let record = null;
  let chosen = null;
  let words = [];

  function choose(kind) {
    chosen = chosen === kind ? null : kind;
    for (const button of buttons.children) {
      button.setAttribute("aria-pressed", String(button.value === chosen));
    }
    words = [];
    list.replaceChildren();
    told.textContent = "";
    if (chosen === null) return;
    const { target, difference } = record.counterfactuals[chosen];
    const moved = target.filter((token, at) => token !== record.target[at]).length;
    const mean = difference.reduce((sum, value) => sum + value, 0) / difference.length;
    told.textContent =
      `${KINDS[chosen][1]}: ${moved} of ${target.length} steps would write another word; ` +
      `the distributions move by ${shown(mean)} on average (total variation, 0 to 1).`;
    words = target.map((token, at) => {
      const before = record.target[at];
      const word = make("span", { className: "word", title: `moved by ${shown(difference[at])}` });
      if (token === before) word.append(visible(token));
      else word.append(make("del", {}, visible(before)), " ", make("ins", {}, visible(token)));
      return word;
    });
    list.replaceChildren(...words.flatMap((word) => [word, document.createTextNode(" ")]));
  }

  return {
    show(next) {
      record = next;
      const kinds = Object.keys(KINDS).filter((kind) => kind in record.counterfactuals);
      host.hidden = kinds.length === 0;
      buttons.replaceChildren(
        ...kinds.map((kind) => {
          const button = make("button", { type: "button", value: kind }, KINDS[kind][0]);
          button.setAttribute("aria-pressed", "false");
          button.addEventListener("click", () => choose(kind));
          return button;
        }),
      );
      const again = kinds.includes(chosen) ? chosen : null;
      chosen = null;
      words = [];
      list.replaceChildren();
      told.textContent = "";
      if (again) choose(again);
    },
    mark(row) {
      words.forEach((word, at) => word.classList.toggle("on", at === row));
    },
  };
}
