// Build a mask, and see the weights follow.

import { band, causal, fromLengths, softmax } from "./numbers.js";
import { choice, controls, slider, telling, weightGrid } from "./parts.js";

export function mask(host, { scores }) {
  const [rows, columns] = [scores.length, scores[0].length];
  const queries = scores.map((_, t) => `q${t + 1}`);
  const keys = scores[0].map((_, i) => `k${i + 1}`);
  let own = fromLengths(columns, rows, columns);

  const grid = weightGrid("Weights; × is forbidden. A cell can be pressed.", queries, keys, {
    onToggle(t, i) {
      own = current().map((row) => [...row]);
      own[t][i] = !own[t][i];
      kind.select.value = "own";
      show();
    },
  });
  const told = telling();
  const kind = choice(
    "Mask",
    [
      ["none", "none: every key"],
      ["padding", "padding: the first keys"],
      ["causal", "causal: no later key"],
      ["window", "window: keys nearby"],
      ["own", "your own"],
    ],
    show,
  );
  const whole = (value) => ({ step: 1, min: 0, value, say: String });
  const length = slider("Keys that are no padding", { ...whole(4), max: columns }, show);
  const left = slider("Keys to the left", { ...whole(1), max: columns - 1 }, show);
  const right = slider("Keys to the right", { ...whole(1), max: columns - 1 }, show);

  function current() {
    return {
      none: () => fromLengths(columns, rows, columns),
      padding: () => fromLengths(length.value, rows, columns),
      causal: () => causal(rows, columns),
      window: () => band(rows, columns, left.value, right.value),
      own: () => own,
    }[kind.select.value]();
  }

  function show() {
    length.element.hidden = kind.select.value !== "padding";
    left.element.hidden = right.element.hidden = kind.select.value !== "window";
    const permitted = current();
    const weights = scores.map((row, t) => softmax(row, permitted[t]));
    grid.show(weights, permitted);
    host.dataset.weights = JSON.stringify(weights);
    host.dataset.mask = JSON.stringify(permitted);
    const kept = permitted.flat().filter(Boolean).length;
    const empty = queries.filter((_, t) => !permitted[t].some(Boolean));
    const word = empty.length === 1 ? "has" : "have";
    told.say(
      `${kept} of ${rows * columns} pairs may attend. ` +
        (empty.length
          ? `${empty.join(", ")} ${word} no key left: all weights are zero, and so is the context.`
          : "Every row of weights sums to 1."),
    );
  }

  host.append(
    controls(kind.element, length.element, left.element, right.element),
    grid.element,
    told.element,
  );
  show();
}
