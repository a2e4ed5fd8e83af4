// What figures are made of: sliders, choices, tables with bars, grids, pictures. Text goes in as
// text, never as HTML.

import { make } from "./elements.js";

const SVG = "http://www.w3.org/2000/svg";

export function draw(tag, properties = {}, ...children) {
  const element = document.createElementNS(SVG, tag);
  for (const [name, value] of Object.entries(properties)) element.setAttribute(name, value);
  element.append(...children);
  return element;
}

export const shown = (number, digits = 3) =>
  // A minus before nothing says nothing.
  number.toFixed(digits).replace(/^-(0\.?0*)$/, "$1");

/** A slider with its label and its value; `say` turns the number into words. */
export function slider(label, { min, max, step, value, say = (x) => shown(x, 2) }, onInput) {
  const input = make("input", { type: "range" });
  Object.assign(input, { min, max, step, value });
  const output = make("output", {});
  const element = make("label", { className: "slider" }, make("span", {}, label), input, output);
  const tell = () => {
    output.textContent = say(Number(input.value));
    input.setAttribute("aria-valuetext", output.textContent);
  };
  input.addEventListener("input", () => {
    tell();
    onInput(Number(input.value));
  });
  tell();
  return {
    element,
    input,
    get value() {
      return Number(input.value);
    },
    set value(number) {
      input.value = number;
      tell();
    },
  };
}

/** A list to choose from; `options` are [value, text] pairs. */
export function choice(label, options, onChange) {
  const select = make("select");
  select.append(...options.map(([value, text]) => make("option", { value }, text)));
  select.addEventListener("change", () => onChange(select.value));
  return { element: make("label", { className: "choice" }, make("span", {}, label), select), select };
}

export function button(text, onClick) {
  const element = make("button", { type: "button" }, text);
  element.addEventListener("click", onClick);
  return element;
}

export const controls = (...children) =>
  make("div", { className: "controls", role: "group", ariaLabel: "Controls" }, ...children);

/** A picture and what belongs to it, side by side where there is room. */
export const beside = (...children) => make("div", { className: "beside" }, ...children);

/** What a reader who does not see the picture is told when it has changed, and everyone else. */
export function telling() {
  const element = make("p", { className: "told", role: "status" });
  let waiting = 0;
  return {
    element,
    say(text) {
      element.dataset.text = text;
      // While a slider moves nothing is read aloud but where it stands.
      clearTimeout(waiting);
      waiting = setTimeout(() => {
        element.textContent = text;
      }, 150);
    },
  };
}

/** A table whose columns named in `bars` are drawn as bars from 0 to 1. */
export function table(caption, columns, bars = []) {
  const body = make("tbody");
  const head = make("tr", {}, ...columns.map((name) => make("th", { scope: "col" }, name)));
  const element = make(
    "div",
    { className: "scroll", tabIndex: 0, role: "region", ariaLabel: caption },
    make("table", {}, make("caption", {}, caption), make("thead", {}, head), body),
  );
  return {
    element,
    /** `rows`: the name of each, then its cells, numbers or text. */
    show(rows) {
      body.replaceChildren(
        ...rows.map(([name, ...cells]) =>
          make(
            "tr",
            {},
            make("th", { scope: "row" }, name),
            ...cells.map((cell, at) => tableCell(cell, bars.includes(columns[at + 1]))),
          ),
        ),
      );
    },
  };
}

function tableCell(cell, isBar) {
  if (typeof cell !== "number") return make("td", {}, cell);
  const element = make("td", { className: isBar ? "bar" : "number" }, make("span", {}, shown(cell)));
  // The number as it was computed, for who checks the page.
  element.dataset.value = cell;
  if (isBar) element.style.setProperty("--share", `${100 * Math.max(0, Math.min(1, cell))}%`);
  return element;
}

/**
 * A grid of numbers from 0 to 1 as shaded cells, with names on both sides.
 *
 * With `onToggle(row, column)` its cells are buttons; arrow keys move between them. With
 * `onRow(row)` the names of its rows are.
 */
export function weightGrid(label, rows, columns, options = {}) {
  const { onToggle = null, onRow = null, digits = 2 } = options;
  const head = make(
    "tr",
    {},
    make("td"),
    ...columns.map((name) => make("th", { scope: "col" }, name)),
  );
  const cells = rows.map((row, t) =>
    columns.map((column, i) => {
      const inside = onToggle ? make("button", { type: "button" }) : make("span");
      if (onToggle) {
        inside.addEventListener("click", () => onToggle(t, i));
        inside.tabIndex = t + i === 0 ? 0 : -1;
        inside.addEventListener("keydown", (event) => walk(event, t, i));
      }
      return inside;
    }),
  );
  const body = rows.map((row, t) =>
    make(
      "tr",
      {},
      make("th", { scope: "row" }, onRow ? button(row, () => onRow(t)) : row),
      ...cells[t].map((inside) => make("td", {}, inside)),
    ),
  );
  const shape = make("table", { className: "weights" }, make("caption", {}, label));
  shape.append(make("thead", {}, head), make("tbody", {}, ...body));

  function walk(event, t, i) {
    const move = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] };
    const [down, right] = move[event.key] ?? [0, 0];
    const next = cells[t + down]?.[i + right];
    if (!(event.key in move) || !next) return;
    event.preventDefault();
    cells[t][i].tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  }
  return {
    element: make(
      "div",
      { className: "scroll", ...(onToggle ? {} : { tabIndex: 0, role: "region", ariaLabel: label }) },
      shape,
    ),
    cells,
    /** `weights`: rows of numbers. `mask`: where one may attend. */
    show(weights, mask = null) {
      weights.forEach((row, t) =>
        row.forEach((weight, i) => {
          const cell = cells[t][i];
          const may = mask?.[t][i] ?? true;
          cell.textContent = may ? shown(weight, digits) : "\u00d7";
          cell.dataset.value = weight;
          cell.classList.toggle("forbidden", !may);
          cell.style.setProperty("--share", `${100 * weight}%`);
          if (!onToggle) return;
          cell.setAttribute("aria-pressed", may);
          cell.setAttribute(
            "aria-label",
            `${rows[t]} at ${columns[i]}: ${may ? `weight ${shown(weight, digits)}` : "forbidden"}`,
          );
        }),
      );
    },
  };
}
