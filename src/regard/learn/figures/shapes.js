// The shape walk: every tensor of a score with the sizes that you type, and what a wrong line does:
// stop with an error, or, worse, run.

import { make } from "./elements.js";
import { button, choice, controls, telling } from "./parts.js";

/** The shape of `a + b` by broadcasting, or null. */
export function together(a, b) {
  const length = Math.max(a.length, b.length);
  const shape = [];
  for (let back = 1; back <= length; back += 1) {
    const [one, other] = [a.at(-back) ?? 1, b.at(-back) ?? 1];
    if (back > a.length) shape.unshift(other);
    else if (back > b.length || other === 1) shape.unshift(one);
    else if (one === 1 || one === other) shape.unshift(other);
    else return null;
  }
  return shape;
}

/** The shape of `a @ b`, or null. */
export function product(a, b) {
  if (!a.length || !b.length) return null;
  const inner = b.length === 1 ? b[0] : b.at(-2);
  if (a.at(-1) !== inner) return null;
  if (b.length === 1) return a.slice(0, -1);
  if (a.length === 1) return [...b.slice(0, -2), b.at(-1)];
  const outer = together(a.slice(0, -2), b.slice(0, -2));
  return outer && [...outer, a.at(-2), b.at(-1)];
}

const turned = (shape) => [...shape.slice(0, -2), shape.at(-1), shape.at(-2)];
const lifted = (shape, axis) => [...shape.slice(0, axis), 1, ...shape.slice(axis)];

// Each walk: its inputs, then lines [name, code, shape from what is there, the shape it should be].
const INPUTS = {
  query: ["batch", "T_dec", "d_s"],
  key: ["batch", "T_enc", "d_h"],
  W_a: ["d_attn", "d_s"],
  U_a: ["d_attn", "d_h"],
  v_a: ["d_attn"],
  W: ["d_s", "d_h"],
};
const ADDITIVE = [
  ["asked", "query @ W_a.T", (t) => product(t.query, turned(t.W_a)), "batch T_dec d_attn"],
  ["offered", "key @ U_a.T", (t) => product(t.key, turned(t.U_a)), "batch T_enc d_attn"],
  [
    "pairs",
    "tanh(asked[:, :, None] + offered[:, None])",
    (t) => together(lifted(t.asked, 2), lifted(t.offered, 1)),
    "batch T_dec T_enc d_attn",
  ],
  ["scores", "pairs @ v_a", (t) => product(t.pairs, t.v_a), "batch T_dec T_enc"],
];
const DOT = [
  ["scores", "query @ key.mT", (t) => product(t.query, turned(t.key)), "batch T_dec T_enc"],
];
const GENERAL = [
  ["asked", "query @ W", (t) => product(t.query, t.W), "batch T_dec d_h"],
  ["scores", "asked @ key.mT", (t) => product(t.asked, turned(t.key)), "batch T_dec T_enc"],
];
const END = [
  ["weights", "softmax(scores, axis=-1)", (t) => t.scores, "batch T_dec T_enc"],
  ["context", "weights @ key", (t) => product(t.weights, t.key), "batch T_dec d_h"],
];
const swap = (lines, changed) => lines.map((line) => changed.find(([name]) => name === line[0]) ?? line);

const SCORES = {
  additive: { lines: ADDITIVE, inputs: ["query", "key", "W_a", "U_a", "v_a"] },
  dot: { lines: DOT, inputs: ["query", "key"] },
  general: { lines: GENERAL, inputs: ["query", "key", "W"] },
};
const MISTAKES = {
  additive: [
    [
      "U_a on the query",
      [["asked", "query @ U_a.T", (t) => product(t.query, turned(t.U_a)), "batch T_dec d_attn"]],
    ],
    [
      "W_a without .T",
      [["asked", "query @ W_a", (t) => product(t.query, t.W_a), "batch T_dec d_attn"]],
    ],
    [
      "no new axes before the sum",
      [["pairs", "tanh(asked + offered)", (t) => together(t.asked, t.offered), "batch T_dec T_enc d_attn"]],
    ],
  ],
  dot: [
    [
      "key without .mT",
      [["scores", "query @ key", (t) => product(t.query, t.key), "batch T_dec T_enc"]],
    ],
  ],
  general: [
    [
      "W.T for W",
      [["asked", "query @ W.T", (t) => product(t.query, turned(t.W)), "batch T_dec d_h"]],
    ],
  ],
};
const ANY = [
  [
    "softmax over the queries",
    [["weights", "softmax(scores, axis=-2)", (t) => t.scores, "batch T_dec T_enc"]],
    "every shape is right, and the rows do not sum to 1: no shape can show it, `regard check` does",
  ],
  [
    "weights transposed before the sum",
    [["context", "weights.mT @ key", (t) => product(turned(t.weights), t.key), "batch T_dec d_h"]],
  ],
];

/** Walk through a score. Ends at the first line that fails. */
export function walk(score, sizes, mistake = -1) {
  const known = SCORES[score];
  const shapes = {};
  for (const name of known.inputs) shapes[name] = INPUTS[name].map((axis) => sizes[axis]);
  const [, changed = [], hidden = ""] = [...MISTAKES[score], ...ANY][mistake] ?? [];
  const steps = [];
  for (const [name, code, of, axes] of swap([...known.lines, ...END], changed)) {
    const shape = of(shapes);
    const wanted = axes.split(" ").map((axis) => sizes[axis]);
    const step = { name, code, axes, shape, wanted };
    steps.push(step);
    if (shape === null) {
      step.verdict = "fails";
      break;
    }
    const same = shape.length === wanted.length && shape.every((size, at) => size === wanted[at]);
    step.verdict = same ? "right" : "wrong";
    shapes[name] = shape;
  }
  const silent = changed.length > 0 && steps.every((step) => step.verdict === "right");
  return { inputs: known.inputs.map((name) => [name, shapes[name]]), steps, silent, hidden };
}

export const mistakes = (score) => [...MISTAKES[score], ...ANY].map(([name]) => name);

const tuple = (shape) => `(${shape.join(", ")}${shape.length === 1 ? "," : ""})`;

export function shapes(host, { sizes }) {
  const now = { ...sizes };
  const told = telling();
  const body = make("tbody");
  const label = "Every tensor and its shape";
  const heads = ["tensor", "line", "shape", "should be"].map((text) => make("th", { scope: "col" }, text));
  const steps = make(
    "div",
    { className: "scroll", tabIndex: 0, role: "region", ariaLabel: label },
    make(
      "table",
      { className: "steps" },
      make("caption", {}, label),
      make("thead", {}, make("tr", {}, ...heads)),
      body,
    ),
  );
  const inputs = Object.keys(sizes).map((axis) => {
    const input = make("input", { type: "number", min: 1, max: 4096, step: 1, value: sizes[axis] });
    input.addEventListener("input", () => {
      const value = Number(input.value);
      const good = Number.isInteger(value) && value >= 1 && value <= 4096;
      input.setAttribute("aria-invalid", !good);
      if (!good) {
        told.say(`${axis} must be a whole number from 1 to 4096.`);
        return;
      }
      now[axis] = value;
      show();
    });
    return make("label", { className: "size" }, make("code", {}, axis), input);
  });
  const score = choice(
    "Score",
    Object.keys(SCORES).map((name) => [name, name]),
    () => {
      offer();
      show();
    },
  );
  const mistake = choice("Mistake", [], show);

  function offer() {
    const names = mistakes(score.select.value).map((name, at) => [at, name]);
    mistake.select.replaceChildren(
      ...[[-1, "none"], ...names].map(([value, text]) => make("option", { value }, text)),
    );
  }

  function show() {
    const found = walk(score.select.value, now, Number(mistake.select.value));
    body.replaceChildren(
      ...found.inputs.map(([name, shape]) =>
        row(name, "given", shape, INPUTS[name].join(", "), "given"),
      ),
      ...found.steps.map((step) =>
        row(step.name, step.code, step.shape, step.axes.split(" ").join(", "), step.verdict),
      ),
    );
    host.dataset.walk = JSON.stringify(found.steps.map(({ name, shape, verdict }) => [name, shape, verdict]));
    told.say(verdict(found));
  }

  const take = (sizesOf) => () => {
    for (const [at, axis] of Object.keys(sizes).entries()) {
      now[axis] = sizesOf(axis);
      const input = inputs[at].querySelector("input");
      input.value = now[axis];
      input.setAttribute("aria-invalid", false);
    }
    show();
  };

  host.append(
    controls(score.element, mistake.element, ...inputs),
    controls(
      button("All sizes alike", take(() => 5)),
      button("No two alike", take((axis) => sizes[axis])),
    ),
    steps,
    told.element,
  );
  offer();
  show();
}

function row(name, code, shape, axes, verdict) {
  const words = { fails: "stops here", wrong: "wrong, and runs", right: "", given: "" }[verdict];
  const found = make("td", {}, shape ? make("code", {}, tuple(shape)) : "no shape");
  if (words) found.append(make("strong", {}, ` ${words}`));
  return make(
    "tr",
    { className: verdict },
    make("th", { scope: "row" }, make("code", {}, name)),
    make("td", {}, make("code", {}, code)),
    found,
    make("td", {}, make("code", {}, `(${axes})`)),
  );
}

function verdict({ steps, silent, hidden }) {
  const last = steps.at(-1);
  const bad = steps.find((step) => step.verdict !== "right");
  if (!bad) {
    if (!silent) return "Every shape is as it should be.";
    return hidden
      ? `It runs: ${hidden}.`
      : "With these sizes the mistake runs and every shape looks right. Sizes that differ show it.";
  }
  if (bad.verdict === "fails") return `\`${bad.code}\` stops: these shapes do not fit together.`;
  const where = `\`${bad.name}\` is ${tuple(bad.shape)} and should be ${tuple(bad.wanted)}`;
  return last.verdict === "fails"
    ? `${where}; the error comes only at \`${last.code}\`.`
    : `${where}: it was broadcast or turned, and nothing stops.`;
}
