// What the model would have written with other weights, where the file says so.

import { fill, make } from "./elements.js";
import { heatMap } from "./map.js";
import { effectsOf, shown, visible, wordWithout } from "./weights.js";

const KINDS = {
  permute: ["Permute", "with each row's weights shuffled"],
  uniform: ["Make uniform", "with every row's weights made equal"],
  ablate: ["Ablate", "with the weights set to zero"],
};

export function changes(host, onPoint) {
  const buttons = make("div", { className: "buttons", role: "group" });
  buttons.setAttribute("aria-label", "What if the weights were others?");
  const told = make("p", { role: "status" });
  const list = make("p", { className: "words", dir: "auto" });
  const left = make("select", { id: "left-out" });
  const choice = make("p", {}, make("label", {}, "Left out ", left));
  const cell = make("p", { className: "quiet" });
  const picture = make("div", { id: "effects" });
  host.append(
    make("h2", {}, "What if the weights were others?"),
    buttons,
    choice,
    told,
    list,
    make(
      "p",
      { className: "quiet" },
      "Each step is changed alone, the words before it being kept. ",
      "The picture above keeps showing the model's own weights.",
    ),
    picture,
    cell,
  );
  let effects = null; // made when there is something to show in it
  let record = null;
  let chosen = null;
  let matrix = null;
  let words = [];

  const before = (at) => (record.counterfactuals[chosen].unaltered ?? record.target)[at];

  function clear() {
    words = [];
    matrix = null;
    list.replaceChildren();
    told.textContent = "";
    cell.textContent = "";
    choice.hidden = true;
    picture.hidden = true;
  }

  function choose(kind, bytes, color) {
    chosen = chosen === kind ? null : kind;
    for (const button of buttons.children) {
      button.setAttribute("aria-pressed", String(button.value === chosen));
    }
    clear();
    if (chosen === null) return;
    const { positions } = record.counterfactuals[chosen];
    if (positions) {
      matrix = effectsOf(bytes, record, positions);
      choice.hidden = false;
      picture.hidden = false;
      const places = record.source.map((token, at) => [String(at), `${at + 1}: ${visible(token)}`]);
      fill(left, [["-1", "each row's largest weight"], ...places], -1);
      left.onchange = () => write(bytes);
      effects ??= heatMap(picture, onPoint);
      effects.show({
        matrix,
        target: record.target,
        source: record.source,
        color,
        label: "How far each step moves without each source word, 0 to 1",
      });
    }
    write(bytes);
  }

  function write(bytes) {
    const kind = record.counterfactuals[chosen];
    const place = kind.positions ? Number(left.value) : -1;
    let { target, difference } = kind;
    let how = kind.how || KINDS[chosen][1];
    if (place >= 0) {
      how = `without \u201c${visible(record.source[place])}\u201d, the other weights scaled up`;
      difference = record.target.map((_, row) => matrix.cells[row * matrix.columns + place]);
      target = record.target.map((_, row) =>
        wordWithout(bytes, record, kind.positions, row, place, before(row)),
      );
    }
    const moved = target.filter((token, at) => token !== before(at)).length;
    const mean = difference.reduce((sum, value) => sum + value, 0) / difference.length;
    const apart = record.target.filter((token, at) => token !== before(at)).length;
    told.textContent =
      `${how[0].toUpperCase()}${how.slice(1)}: ${moved} of ${target.length} steps would write another word; ` +
      `the distributions move by ${shown(mean)} on average (total variation, 0 to 1).` +
      (apart ? ` Already with its own weights it would not write the text at ${apart} steps.` : "");
    words = target.map((token, at) => {
      const word = make("span", { className: "word", title: `moved by ${shown(difference[at])}` });
      if (token === before(at)) word.append(visible(token));
      else word.append(make("del", {}, visible(before(at))), " ", make("ins", {}, visible(token)));
      return word;
    });
    list.replaceChildren(...words.flatMap((word) => [word, document.createTextNode(" ")]));
  }

  return {
    show(next, bytes, color) {
      record = next;
      const kinds = Object.keys(KINDS).filter((kind) => kind in record.counterfactuals);
      host.hidden = kinds.length === 0;
      buttons.replaceChildren(
        ...kinds.map((kind) => {
          const button = make("button", { type: "button", value: kind }, KINDS[kind][0]);
          button.setAttribute("aria-pressed", "false");
          button.addEventListener("click", () => choose(kind, bytes, color));
          return button;
        }),
      );
      const again = kinds.includes(chosen) ? chosen : null;
      chosen = null;
      clear();
      if (again) choose(again, bytes, color);
    },
    mark(row, column) {
      words.forEach((word, at) => word.classList.toggle("on", at === row));
      if (matrix === null) return;
      effects.mark(row, column);
      cell.textContent =
        row === null || column === null
          ? ""
          : `Without \u201c${visible(record.source[column])}\u201d step ${row + 1}, ` +
            `\u201c${visible(record.target[row])}\u201d, moves by ` +
            `${shown(matrix.cells[row * matrix.columns + column])}.`;
    },
  };
}
