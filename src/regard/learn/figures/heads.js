// Multi-head self-attention: the same numbers, cut into heads, look at different places.

import { make } from "./elements.js";
import { multiHead } from "./numbers.js";
import { choice, controls, shown, telling, weightGrid } from "./parts.js";

export function heads(host, { tokens, states }) {
  const d = states[0].length;
  const counts = [1, 2, 4, 8].filter((count) => d % count === 0);
  const cut = make("div", { className: "cut", role: "img" });
  const grids = make("div", { className: "grids" });
  const told = telling();
  const which = choice(
    "Heads",
    counts.map((count) => [count, `${count} of size ${d / count}`]),
    show,
  );
  which.select.value = 2;
  const row = choice(
    "Query",
    tokens.map((token, at) => [at, token]),
    show,
  );

  function show() {
    const count = Number(which.select.value);
    const at = Number(row.select.value);
    const { weights, context } = multiHead(states, count);
    cut.replaceChildren(
      ...states[at].map((x, place) => {
        const cell = make("span", {}, shown(x, 1));
        if (place % (d / count) === 0 && place) cell.className = "first";
        return cell;
      }),
    );
    cut.ariaLabel = `The ${d} numbers of “${tokens[at]}”, cut into ${count} of ${d / count}`;
    grids.replaceChildren(
      ...weights.map((rows, head) => {
        const grid = weightGrid(`Head ${head + 1}`, tokens, tokens, {
          onRow(query) {
            row.select.value = query;
            show();
            // The grids are new; who pressed a key stays where it was.
            const names = grids.children[head].querySelectorAll("tbody th button");
            names[query].focus();
          },
        });
        grid.show(rows);
        const name = grid.element.querySelectorAll("tbody th button")[at];
        name.setAttribute("aria-pressed", "true");
        name.closest("tr").classList.add("asked");
        return grid.element;
      }),
    );
    const looks = weights.map((rows, head) => {
      const most = rows[at].indexOf(Math.max(...rows[at]));
      return `head ${head + 1} looks most at “${tokens[most]}” (${shown(rows[at][most], 2)})`;
    });
    Object.assign(host.dataset, {
      weights: JSON.stringify(weights),
      context: JSON.stringify(context),
    });
    told.say(`From “${tokens[at]}”: ${looks.join("; ")}.`);
  }

  host.append(controls(which.element, row.element), cut, grids, told.element);
  show();
}
