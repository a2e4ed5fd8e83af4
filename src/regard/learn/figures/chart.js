// Lines of accuracy against length. Drawn anew for the room that there is: words are as large on a
// phone as on a desk.

import { make } from "./elements.js";
import { draw, shown } from "./parts.js";

const TALL = 300;
const NARROW = 460;
const APART = 26; // what a number under the axis needs
const MARKS = ["M-5 -5H5V5H-5Z", "M0 -6L6 5H-6Z", "M0 -6L6 0L0 6L-6 0Z", "M-6 -5H6L0 6Z", "M-5 0H5M0 -5V5"];

const markOf = (at, more = {}) =>
  draw("path", { d: MARKS[at % MARKS.length], class: `mark mark-${at}`, ...more });

export function chart() {
  const host = make("div", { className: "chart" });
  let wide = 0;
  let now = null;

  function redraw() {
    wide = host.clientWidth;
    if (!now) return;
    const room = Math.max(280, Math.min(640, wide));
    const narrow = room < NARROW;
    host.replaceChildren(picture(now, room, narrow ? 20 : 112, !narrow));
    if (narrow) host.append(legend(now.lines));
  }
  new ResizeObserver(() => {
    if (host.clientWidth !== wide) redraw();
  }).observe(host);
  return {
    element: host,
    /** `lines`: {name, points: [[length, accuracy]...]}; `onPoint(name, point)`. */
    show(next) {
      now = next;
      redraw();
    },
  };
}

function legend(lines) {
  const list = make("ul", { className: "legend" });
  for (const [at, { name }] of lines.entries()) {
    const sign = draw("svg", { viewBox: "-8 -8 16 16", "aria-hidden": "true" }, markOf(at));
    list.append(make("li", {}, sign, name));
  }
  return list;
}

function picture({ lines, lengths, trained, chance, onPoint }, wide, right, named) {
  const [left, top, bottom] = [40, 14, 40];
  const end = wide - right;
  const [least, most] = [Math.log(Math.min(...lengths)), Math.log(Math.max(...lengths))];
  const x = (at) => left + ((Math.log(at) - least) / (most - least || 1)) * (end - left);
  const y = (value) => TALL - bottom - value * (TALL - top - bottom);
  const svg = draw("svg", {
    viewBox: `0 0 ${wide} ${TALL}`,
    class: "curves",
    role: "group",
    "aria-label": "Token accuracy against length, a line for each model",
  });
  const level = (value, name) =>
    draw("line", { x1: left, x2: end + 8, y1: y(value), y2: y(value), class: name });
  const longest = Math.max(...lengths);
  if (trained < longest) {
    const ground = { x: x(trained), y: y(1), width: end + 8 - x(trained), height: y(0) - y(1) };
    svg.append(draw("rect", { ...ground, class: "untrained" }));
    if (ground.width > 90) {
      svg.append(draw("text", { x: end + 4, y: y(1) + 16, class: "tick end" }, "not trained"));
    }
  }
  for (const value of [0, 0.25, 0.5, 0.75, 1]) {
    svg.append(
      level(value, "rule"),
      draw("text", { x: left - 8, y: y(value) + 4, class: "tick end" }, String(value)),
    );
  }
  if (chance) svg.append(level(chance, "chance"));
  let last = Infinity;
  for (const each of [...lengths].sort((a, b) => b - a)) {
    if (last - x(each) < APART) continue;
    last = x(each);
    svg.append(draw("text", { x: last, y: TALL - 20, class: "tick" }, String(each)));
  }
  const under = { x: (left + end) / 2, y: TALL - 4, class: "axis-name" };
  svg.append(draw("text", under, "length, by its logarithm"));
  const places = apart(lines.map(({ points }) => y(points.at(-1)[1])));
  lines.forEach(({ name, points }, at) => {
    const path = points.map(([each, value]) => `${x(each)} ${y(value)}`).join("L");
    svg.append(draw("path", { d: `M${path}`, class: `line line-${at}` }));
    if (named) {
      svg.append(draw("text", { x: end + 14, y: places[at] + 4, class: "tick start" }, name));
    }
  });
  // After every line, so that none covers a mark.
  lines.forEach(({ name, points }, at) => {
    for (const point of points) {
      const told = `${name}, length ${point[0]}: ${shown(point[1])}`;
      const mark = markOf(at, {
        transform: `translate(${x(point[0])} ${y(point[1])})`,
        tabindex: 0,
        role: "img",
        "aria-label": told,
      });
      mark.append(draw("title", {}, told));
      for (const kind of ["pointerenter", "focus", "click"]) {
        mark.addEventListener(kind, () => onPoint(name, point));
      }
      svg.append(mark);
    }
  });
  return svg;
}

/** Move names apart, so that none covers another. */
function apart(places) {
  const order = places.map((_, at) => at).sort((a, b) => places[a] - places[b]);
  const found = [...places];
  order.forEach((at, place) => {
    if (place) found[at] = Math.max(found[at], found[order[place - 1]] + 15);
  });
  return found;
}
