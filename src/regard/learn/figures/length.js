// Accuracy against length, from a run of `regard demo`: the shipped one, or the reader's own file.

import { make } from "./elements.js";
import { chart } from "./chart.js";
import { controls, shown, table, telling } from "./parts.js";

const NAMES = { none: "no attention", bahdanau: "Bahdanau", dot: "Luong dot", general: "Luong general", concat: "Luong concat" };

const mean = (values) => values.reduce((sum, x) => sum + x, 0) / values.length;

/** The lines of a result of `regard demo`: {name, points: [[length, accuracy]...]}; throws. */
export function curves(result) {
  const copy = result?.copy;
  if (!Array.isArray(copy?.lengths) || typeof copy.models !== "object") {
    throw new Error("it has no results of the copy task");
  }
  return Object.entries(copy.models).map(([name, { token_accuracy: found }]) => ({
    name: NAMES[name] ?? name,
    points: copy.lengths.map((length) => {
      const value = mean([found?.[length]].flat());
      if (!(value >= 0 && value <= 1)) throw new Error(`${name} has no accuracy at ${length}`);
      return [length, value];
    }),
  }));
}

export function length(host, { result }) {
  const told = telling();
  const curve = chart();
  const numbers = make("div");
  const file = make("input", { type: "file", accept: ".json,application/json" });
  file.addEventListener("change", async () => {
    const [chosen] = file.files;
    if (!chosen) return;
    try {
      show(JSON.parse(await chosen.text()), chosen.name);
    } catch (error) {
      told.say(`${chosen.name} cannot be shown: ${error.message}. It should be demo.json of regard demo.`);
    }
  });

  function show(given, from) {
    const lines = curves(given);
    const trained = given.copy.trained_lengths?.[1] ?? Infinity;
    const lengths = given.copy.lengths;
    curve.show({ lines, lengths, trained, chance: given.copy.chance, onPoint: point });
    const found = table("Token accuracy at each length", ["length", ...lines.map(({ name }) => name)]);
    found.show(
      lengths.map((each, at) => [
        `${each}${each > trained ? "*" : ""}`,
        ...lines.map(({ points }) => points[at][1]),
      ]),
    );
    numbers.replaceChildren(
      make("details", {}, make("summary", {}, "The numbers"), found.element),
    );
    host.dataset.curves = JSON.stringify(lines);
    told.say(
      `${from}: ` +
        lines.map(({ name, points }) => `${name} ${shown(points[0][1])} at length ${points[0][0]}, ` +
          `${shown(points.at(-1)[1])} at ${points.at(-1)[0]}`).join("; ") +
        (lengths.some((each) => each > trained) ? `. Lengths above ${trained} were not trained.` : "."),
    );
  }

  function point(name, [at, value]) {
    told.say(`${name}, length ${at}: token accuracy ${shown(value)}.`);
  }

  host.append(
    curve.element,
    told.element,
    numbers,
    controls(make("label", { className: "file" }, make("span", {}, "Your own run: demo.json of regard demo"), file)),
  );
  show(result, "The run that ships with regard");
}
