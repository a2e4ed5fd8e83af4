// Questions on the page. What is answered is kept in the browser, in the form that
// `regard learn quiz` reads and writes.

import { make } from "./elements.js";
import { button } from "./parts.js";

const KEY = "regard quiz";
const EMPTY = { format: "regard quiz", version: 1, answers: {} };

/** Progress from text; throws with words for the reader. */
export function parsed(text) {
  let found;
  try {
    found = JSON.parse(text);
  } catch {
    throw new Error("it is no JSON");
  }
  if (found?.format !== EMPTY.format || found.version !== 1) throw new Error("it is another file");
  const counted = (said) =>
    ["right", "wrong"].every((name) => Number.isInteger(said?.[name]) && said[name] >= 0) &&
    ["right", "wrong"].includes(said.last);
  if (typeof found.answers !== "object" || !Object.values(found.answers ?? [0]).every(counted)) {
    throw new Error("its answers are not counted as they should be");
  }
  return found;
}

/** Count one answer. */
export function noted(progress, id, right) {
  const { right: good = 0, wrong: bad = 0 } = progress.answers[id] ?? {};
  const said = right
    ? { right: good + 1, wrong: bad, last: "right" }
    : { right: good, wrong: bad + 1, last: "wrong" };
  return { ...progress, answers: { ...progress.answers, [id]: said } };
}

/** Both together: of each question what was answered more often, so that twice is as once. */
export function joined(one, other) {
  const answers = { ...one.answers };
  for (const [id, said] of Object.entries(other.answers)) {
    const mine = answers[id];
    if (!mine || said.right + said.wrong > mine.right + mine.wrong) answers[id] = said;
  }
  return { ...EMPTY, answers };
}

function load() {
  try {
    return parsed(localStorage.getItem(KEY) ?? "");
  } catch {
    return EMPTY; // nothing yet, or a browser that keeps nothing
  }
}

function save(progress) {
  try {
    localStorage.setItem(KEY, JSON.stringify(progress));
  } catch {
    // A browser that keeps nothing still asks questions.
  }
}

const asCode = (text) =>
  text.split("`").map((part, at) => (at % 2 ? make("code", {}, part) : part));

export function quizzes() {
  const sections = [...document.querySelectorAll("section.quiz")];
  if (!sections.length) return;
  let progress = load();
  const standing = make("p", { role: "status", className: "standing" });
  const all = [];

  function change(next) {
    progress = next;
    save(progress);
    tell();
  }

  function tell() {
    const right = all.filter((id) => progress.answers[id]?.last === "right").length;
    standing.textContent = `${right} of this page's ${all.length} questions answered right.`;
  }

  for (const section of sections) {
    const asked = JSON.parse(section.querySelector("script").textContent);
    const host = section.querySelector(".questions");
    host.replaceChildren(
      ...asked.map((each) => {
        all.push(each.id);
        return question(each, (right) => change(noted(progress, each.id, right)));
      }),
    );
    section.dataset.ready = "";
  }
  sections.at(-1).append(standing, keeping(() => progress, change));
  tell();
}

function question({ id, variants }, onAnswer) {
  const host = make("fieldset", { className: "question" });
  let at = Math.floor(Math.random() * variants.length);

  function show() {
    const { text, options, right, because } = variants[at];
    const verdict = make("p", { className: "verdict", role: "status" });
    const inputs = options.map((_, place) =>
      make("input", { type: "radio", name: `${id}`, value: place }),
    );
    const lines = options.map((option, place) =>
      make("label", {}, inputs[place], make("span", {}, ...asCode(option))),
    );
    const answer = button("Answer", () => {
      const chosen = inputs.findIndex((input) => input.checked);
      if (chosen < 0) {
        verdict.textContent = "Choose an answer first.";
        return;
      }
      inputs.forEach((input) => {
        input.disabled = true;
      });
      answer.disabled = true;
      lines[right].classList.add("right");
      if (chosen !== right) lines[chosen].classList.add("wrong");
      const word = chosen === right ? "Right. " : "No. ";
      verdict.replaceChildren(make("strong", {}, word), ...asCode(because));
      onAnswer(chosen === right);
      if (variants.length > 1) another.hidden = false;
      else again.hidden = false;
    });
    const another = button("Another like it", () => {
      at = (at + 1) % variants.length;
      show();
      host.querySelector("input").focus();
    });
    const again = button("Ask again", () => {
      show();
      host.querySelector("input").focus();
    });
    another.hidden = again.hidden = true;
    const legend = make("legend", {}, ...asCode(text));
    host.replaceChildren(legend, ...lines, make("div", { className: "buttons" }, answer, another, again), verdict);
  }
  show();
  return host;
}

function keeping(current, change) {
  const told = make("p", { role: "status" });
  const file = make("input", { type: "file", accept: ".json,application/json" });
  file.addEventListener("change", async () => {
    const [chosen] = file.files;
    if (!chosen) return;
    try {
      change(joined(current(), parsed(await chosen.text())));
      told.textContent = `${chosen.name} was read.`;
    } catch (error) {
      told.textContent = `${chosen.name} was not read: ${error.message}.`;
    }
  });
  const out = button("Save to a file", () => {
    const text = `${JSON.stringify(current(), null, 1)}\n`;
    const link = make("a", {
      href: URL.createObjectURL(new Blob([text], { type: "application/json" })),
      download: "regard-quiz.json",
    });
    link.click();
    URL.revokeObjectURL(link.href);
  });
  const forget = button("Forget all", () => {
    change(EMPTY);
    told.textContent = "Nothing is kept any more.";
  });
  const read = make("label", {}, "Read a file ", file);
  return make(
    "details",
    {},
    make("summary", {}, "What is kept"),
    make("p", {}, "Answers stay in this browser. The file is the one of `regard learn quiz --export`.".replaceAll("`", "")),
    make("div", { className: "buttons" }, out, read, forget),
    told,
  );
}
