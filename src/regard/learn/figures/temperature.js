// Temperature and scaling: how sharp weights are, and why scores are divided by sqrt(d).

import { entropy, softmax } from "./numbers.js";
import { beside, choice, controls, shown, slider, table, telling } from "./parts.js";

export function temperature(host, { query, keys }) {
  const names = keys.map((_, at) => `key ${at + 1}`);
  const found = table("Scores and weights", ["key", "score", "score / temperature", "weight"], [
    "weight",
  ]);
  const told = telling();
  const sizes = [];
  for (let d = 1; d <= query.length; d *= 2) sizes.push(d);
  const size = slider(
    "d: how many numbers a query and a key have",
    {
      min: 0,
      max: sizes.length - 1,
      step: 1,
      value: sizes.length - 1,
      say: (at) => `${sizes[at]}`,
    },
    show,
  );
  const heat = slider(
    "Temperature",
    { min: -1, max: 1, step: 0.05, value: 0, say: (power) => shown(10 ** power, 2) },
    show,
  );
  const scaling = choice(
    "Scores",
    [
      ["plain", "q · k, as they are"],
      ["scaled", "q · k / √d, scaled"],
    ],
    show,
  );

  function show() {
    const d = sizes[size.value];
    const by = 10 ** heat.value;
    const products = keys.map((key) =>
      key.slice(0, d).reduce((sum, x, at) => sum + x * query[at], 0),
    );
    const scores =
      scaling.select.value === "scaled" ? products.map((e) => e / Math.sqrt(d)) : products;
    const divided = scores.map((e) => e / by);
    const weights = softmax(divided);
    found.show(names.map((name, at) => [name, scores[at], divided[at], weights[at]]));
    const spread = entropy(weights);
    Object.assign(host.dataset, {
      weights: JSON.stringify(weights),
      scores: JSON.stringify(scores),
      entropy: spread,
    });
    const most = weights.indexOf(Math.max(...weights));
    told.say(
      `d = ${d}, temperature ${shown(by, 2)}, ${scaling.select.value} scores: the largest weight ` +
        `is ${shown(weights[most])} (${names[most]}); entropy ${shown(spread)} of at most ` +
        `${shown(Math.log(keys.length))} nats.`,
    );
  }

  host.append(
    controls(scaling.element, size.element, heat.element),
    beside(found.element),
    told.element,
  );
  show();
}
