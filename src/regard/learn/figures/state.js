// Drag the decoder's state: scores, weights and context follow.

import { additive, attend, dot } from "./numbers.js";
import { beside, button, choice, controls, draw, shown, slider, table, telling } from "./parts.js";

const SIDE = 320; // of the picture, in its own units
const EDGE = 34;
const LOW = -0.5;
const HIGH = 1.5;
const STEP = 0.05;

const across = (x) => EDGE + ((x - LOW) / (HIGH - LOW)) * (SIDE - 2 * EDGE);
const down = (y) => SIDE - across(y);
const held = (x) => Math.max(LOW, Math.min(HIGH, x));

export function state(host, { keys, names, starts, params }) {
  const now = { s: [...starts[0].state], score: "dot" };
  const scores = {
    dot,
    additive: (query, key) => additive(query, key, params),
  };

  const handle = draw("g", {
    class: "handle",
    tabindex: 0,
    role: "slider",
    "aria-label": "Decoder state, first and second number",
    "aria-valuemin": LOW,
    "aria-valuemax": HIGH,
  });
  handle.append(draw("circle", { r: 22, class: "reach" }), draw("circle", { r: 9 }));
  const handleName = draw("text", { class: "name" }, "s");
  const context = draw("path", { d: "M0 -8 L8 0 L0 8 L-8 0 Z", class: "context" });
  const contextName = draw("text", { class: "name" }, "c");
  const spots = keys.map(() => draw("circle", { class: "key" }));
  const lines = keys.map(() => draw("line", { class: "pull" }));
  const picture = draw(
    "svg",
    { viewBox: `0 0 ${SIDE} ${SIDE}`, class: "plane", role: "group", "aria-label": "The plane of the first two numbers of every state" },
    draw("rect", { x: across(LOW), y: down(HIGH), width: across(HIGH) - EDGE, height: across(HIGH) - EDGE, class: "ground" }),
    draw("line", { x1: across(0), x2: across(0), y1: down(LOW), y2: down(HIGH), class: "axis" }),
    draw("line", { y1: down(0), y2: down(0), x1: across(LOW), x2: across(HIGH), class: "axis" }),
    ...lines,
    ...spots,
    ...keys.map((h, at) =>
      draw("text", { x: across(h[0]) + 12, y: down(h[1]) - 10, class: "name" }, names[at]),
    ),
    context,
    contextName,
    handle,
    handleName,
    draw("text", { x: SIDE / 2, y: SIDE - 8, class: "axis-name" }, "first number"),
    draw("text", { x: -SIDE / 2, y: 14, class: "axis-name", transform: "rotate(-90)" }, "second number"),
  );
  const found = table("Scores, weights and context", ["encoder state", "score", "weight"], ["weight"]);
  const told = telling();
  const third = slider(
    "Third number of s",
    { min: LOW, max: HIGH, step: STEP, value: now.s[2] },
    (value) => {
      now.s[2] = value;
      show();
    },
  );
  const which = choice(
    "Score",
    [
      ["dot", "dot: s · h"],
      ["additive", "additive: v · tanh(W s + U h)"],
    ],
    (value) => {
      now.score = value;
      show();
    },
  );
  const presets = starts.map(({ name, state: start }) =>
    button(name, () => {
      now.s = [...start];
      third.value = start[2];
      show();
    }),
  );

  function show() {
    const { weights, context: c } = attend([now.s], keys, keys, scores[now.score]);
    const values = scores[now.score]([now.s], keys)[0];
    keys.forEach((h, at) => {
      const [x, y] = [across(h[0]), down(h[1])];
      const place = { cx: x, cy: y, r: 5 + 18 * weights[0][at] };
      for (const [name, value] of Object.entries(place)) spots[at].setAttribute(name, value);
      const line = { x1: across(now.s[0]), y1: down(now.s[1]), x2: x, y2: y };
      for (const [name, value] of Object.entries(line)) lines[at].setAttribute(name, value);
      lines[at].style.strokeWidth = 8 * weights[0][at];
    });
    move(handle, now.s);
    move(context, c[0]);
    place(handleName, now.s, -16);
    place(contextName, c[0], 22);
    handle.setAttribute("aria-valuenow", now.s[0]);
    handle.setAttribute("aria-valuetext", `s = (${now.s.map((x) => shown(x, 2)).join(", ")})`);
    found.show([
      ...keys.map((_, at) => [names[at], values[at], weights[0][at]]),
      ["context c", c[0].map((x) => shown(x)).join("  "), ""],
    ]);
    host.dataset.weights = JSON.stringify(weights[0]);
    host.dataset.context = JSON.stringify(c[0]);
    host.dataset.scores = JSON.stringify(values);
    const most = weights[0].indexOf(Math.max(...weights[0]));
    told.say(
      `With s = (${now.s.map((x) => shown(x, 2)).join(", ")}) the ${now.score} score gives ` +
        `${names[most]} the most weight, ${shown(weights[0][most])}.`,
    );
  }

  function moveTo(x, y) {
    now.s[0] = held(x);
    now.s[1] = held(y);
    show();
  }

  function pointed(event) {
    const box = picture.getBoundingClientRect();
    const x = ((event.clientX - box.left) / box.width) * SIDE;
    const y = ((event.clientY - box.top) / box.height) * SIDE;
    const number = (at) => LOW + ((at - EDGE) / (SIDE - 2 * EDGE)) * (HIGH - LOW);
    moveTo(number(x), number(SIDE - y));
  }

  handle.addEventListener("pointerdown", (event) => {
    handle.setPointerCapture(event.pointerId);
    event.preventDefault();
    handle.focus();
  });
  // touch-action does not hold inside a picture: without this the page would scroll under a finger.
  handle.addEventListener("touchstart", (event) => event.preventDefault(), { passive: false });
  handle.addEventListener("pointermove", (event) => {
    if (handle.hasPointerCapture(event.pointerId)) pointed(event);
  });
  handle.addEventListener("keydown", (event) => {
    const moves = { ArrowLeft: [-1, 0], ArrowRight: [1, 0], ArrowDown: [0, -1], ArrowUp: [0, 1] };
    const way = moves[event.key];
    if (!way) return;
    event.preventDefault();
    // Steps are counted from nothing, so that no rounding gathers.
    const next = way.map((step, at) => Math.round(now.s[at] / STEP + step) * STEP);
    moveTo(...next.map((x) => Number(x.toFixed(2))));
  });

  host.append(
    controls(which.element, third.element, ...presets),
    beside(picture, found.element),
    told.element,
  );
  show();
}

const move = (element, [x, y]) =>
  element.setAttribute("transform", `translate(${across(x)} ${down(y)})`);

function place(text, [x, y], above) {
  text.setAttribute("x", across(x));
  text.setAttribute("y", down(y) + above);
}
