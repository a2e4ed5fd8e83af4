// The permutation game: how far can the weights move while the answer stays where it is?

import { make } from "./elements.js";
import { answer, divergence, farthest } from "./numbers.js";
import { button, controls, shown, slider, table, telling } from "./parts.js";

const MOST = Math.log(2);

export function permutation(host, { tokens, offers, bias, weights: start, least }) {
  const said = answer(start, offers, bias);
  let now = [...start];
  let best = 0;
  const told = telling();
  const found = table(
    "Weights as they were and as they are",
    ["token", "what it offers", "weight before", "weight now"],
    ["weight before", "weight now"],
  );
  const meters = make("p", { className: "meters" });
  const sliders = tokens.map((token, at) =>
    slider(token, { min: 0, max: 1, step: 0.01, value: start[at] }, (value) => {
      now = shared(now, at, value);
      show();
    }),
  );

  function take(next) {
    now = next;
    show();
  }

  function shuffle() {
    const order = now.map((_, at) => at);
    for (let at = order.length - 1; at > 0; at -= 1) {
      const other = Math.floor(Math.random() * (at + 1));
      [order[at], order[other]] = [order[other], order[at]];
    }
    take(order.map((at) => now[at]));
  }

  function show() {
    sliders.forEach((each, at) => {
      each.value = now[at];
    });
    const p = answer(now, offers, bias);
    const far = divergence(start, now);
    const held = Math.abs(p - said) <= least + 1e-12;
    if (held) best = Math.max(best, far);
    found.show(tokens.map((token, at) => [token, shown(offers[at], 1), start[at], now[at]]));
    meters.replaceChildren(
      "Answer ",
      make("strong", {}, shown(p)),
      ` (was ${shown(said)}, may move by ${least}). Weights moved by `,
      make("strong", {}, shown(far)),
      ` of at most ${shown(MOST)}. Farthest so far with the same answer: `,
      make("strong", {}, shown(best)),
      ".",
    );
    Object.assign(host.dataset, { weights: JSON.stringify(now), answer: p, far, best });
    told.say(
      `${held ? "The answer is the same" : "The answer has moved"}: ${shown(p)}. ` +
        `The weights moved by ${shown(far)}.`,
    );
  }

  host.append(
    controls(...sliders.map((each) => each.element)),
    controls(
      button("Permute", shuffle),
      button("Uniform", () => take(now.map(() => 1 / now.length))),
      button("Farthest that there is", () => take(farthest(start, offers, bias, least))),
      button("Back", () => take([...start])),
    ),
    meters,
    found.element,
    told.element,
  );
  show();
}

/** Give one token a weight; the others share the rest as they did before. */
export function shared(weights, at, value) {
  const rest = weights.reduce((sum, a, place) => sum + (place === at ? 0 : a), 0);
  return weights.map((a, place) => {
    if (place === at) return value;
    return rest > 0 ? (a / rest) * (1 - value) : (1 - value) / (weights.length - 1);
  });
}
