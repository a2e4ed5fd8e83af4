// Start what a page has: each figure stands in an element that names it and holds what it is given.

import { heads } from "./heads.js";
import { length } from "./length.js";
import { mask } from "./mask.js";
import { permutation } from "./permutation.js";
import { quizzes } from "./quiz.js";
import { shapes } from "./shapes.js";
import { state } from "./state.js";
import { temperature } from "./temperature.js";

const FIGURES = { heads, length, mask, permutation, shapes, state, temperature };

export function start() {
  for (const figure of document.querySelectorAll("figure[data-figure]")) {
    const host = figure.querySelector(".figure");
    const given = JSON.parse(figure.querySelector("script[type='application/json']").textContent);
    host.replaceChildren();
    FIGURES[figure.dataset.figure](host, given);
    figure.dataset.ready = "";
  }
  quizzes();
}
