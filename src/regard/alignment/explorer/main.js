// The explorer: what is shown follows from one state; every control changes the state.

import { palette } from "./colors.js";
import { changes } from "./changes.js";
import { fill } from "./elements.js";
import { headGrid } from "./heads.js";
import { linkPicture } from "./links.js";
import { heatMap } from "./map.js";
import { weightTable } from "./table.js";
import { largest, matrixOf, minus, rowOf, sameTokens, shown, unpack, visible } from "./weights.js";
import { columnOf } from "./weights.js";
import { sentences } from "./words.js";

export async function start() {
  const get = (id) => document.getElementById(id);
  const data = JSON.parse(get("alignments").textContent);
  const bytes = await unpack(data.packed);
  const { records } = data;
  const state = { record: 0, layer: 0, head: 0, other: null, threshold: 0.3, pinned: null };
  const at = { row: null, column: null };
  const views = [];
  let drawn = null;

  const maps = [get("map-one"), get("map-two")].map((host) => heatMap(host, point));
  const text = sentences(get("sentences"), point);
  const links = linkPicture(get("links"));
  const heads = headGrid(get("heads"), (layer, head) => {
    Object.assign(state, { layer, head });
    refresh();
    maps[0].element.scrollIntoView({ block: "nearest" });
  });
  const table = weightTable(get("table"));
  const changed = changes(get("changes"), point);

  const titles = [...new Set(records.map((record) => record.name))];
  const sentenceOf = (name) => records.find((record) => record.name === name).source;
  const choices = titles.map((name, place) => {
    const start_ = sentenceOf(name).slice(0, 8).map(visible).join(" ");
    return [String(place), `${name}: ${start_}`.slice(0, 60)];
  });
  fill(get("sentence"), choices, 0);

  function theme() {
    const set = document.documentElement.dataset.theme;
    if (set) return set;
    return matchMedia("(prefers-color-scheme: dark)").matches ? "dark" : "light";
  }

  const named = (record) => record.model || "this model";
  const siblings = () => records.filter((one) => one.name === records[state.record].name);

  function heading(record, layer, head) {
    const which = head < 0 ? "mean of heads" : `head ${record.heads[head]}`;
    const model = record.model ? `${record.model}, ` : "";
    return `${model}layer ${record.layers[layer]}, ${which}`;
  }

  function headOptions(record) {
    const each = record.heads.map((head, place) => [String(place), String(head)]);
    return each.length > 1 ? [["-1", "mean"], ...each] : each;
  }

  /** Bring the selects to the state, and the state to what the record has. */
  function controls() {
    const record = records[state.record];
    get("sentence").value = String(titles.indexOf(record.name));
    const models = siblings().map((one) => [String(records.indexOf(one)), named(one)]);
    fill(get("model"), models, state.record);
    get("model").parentElement.hidden = models.length < 2 && !record.model;
    const layers = record.layers.map((layer, place) => [String(place), String(layer)]);
    state.layer = Number(fill(get("layer"), layers, state.layer));
    state.head = Number(fill(get("head"), headOptions(record), state.head));
    const single = record.layers.length * record.heads.length === 1;
    if (single && models.length < 2) state.other = null;
    get("compare").parentElement.hidden = single && models.length < 2;
    get("compare").checked = state.other !== null;
    get("other").hidden = state.other === null;
    if (state.other === null) return;
    const { other } = state;
    if (!siblings().includes(records[other.record])) other.record = state.record;
    other.record = Number(fill(get("other-model"), models, other.record));
    const second = records[other.record];
    const otherLayers = second.layers.map((layer, place) => [String(place), String(layer)]);
    other.layer = Number(fill(get("other-layer"), otherLayers, other.layer));
    other.head = Number(fill(get("other-head"), headOptions(second), other.head));
    const alike = sameTokens(record, second);
    get("difference").disabled = !alike;
    if (!alike) get("difference").checked = false;
  }

  function refresh() {
    controls();
    const record = records[state.record];
    const color = palette(theme());
    const view = (one, layer, head) => ({
      matrix: matrixOf(bytes, one, layer, head),
      target: one.target,
      source: one.source,
      color,
      label: heading(one, layer, head),
    });
    views.length = 0;
    views.push(view(record, state.layer, state.head));
    if (state.other !== null) {
      const { other } = state;
      let second = view(records[other.record], other.layer, other.head);
      if (get("difference").checked) {
        second = {
          ...second,
          matrix: minus(views[0].matrix, second.matrix),
          color: palette(theme(), true),
          label: `difference from ${second.label}`,
        };
      }
      views.push(second);
    }
    get("map-two").hidden = views.length < 2;
    get("difference-key").hidden = views.length < 2 || !get("difference").checked;
    get("maps").classList.toggle("two", views.length === 2);
    views.forEach((one, place) => maps[place].show(one));
    text.show(views[0]);
    table.show(views[0]);
    const small = `${state.record} ${theme()}`; // what the small pictures depend on
    if (small !== drawn) heads.show(bytes, record, color);
    drawn = small;
    heads.mark(state.layer, state.head);
    get("all-heads").hidden = record.layers.length * record.heads.length === 1;
    changed.show(record, bytes, color);
    get("step").max = String(record.target.length);
    get("scale").style.background = `linear-gradient(to right, ${[0, 0.25, 0.5, 0.75, 1]
      .map((value) => `rgb(${color(value).join(", ")})`)
      .join(", ")})`;
    const inside = ([row, column]) =>
      row < record.target.length && column < record.source.length;
    if (state.pinned && !inside(state.pinned)) state.pinned = null; // null < 1 holds
    threshold();
    set(...(state.pinned ?? [null, null]));
  }

  function threshold() {
    state.threshold = Number(get("threshold").value);
    const count = links.show(views[0], state.threshold);
    get("threshold-value").textContent = `${shown(state.threshold)}: ${count} links`;
    links.mark(at.row, at.column);
  }

  /** Pointing is undone when the pointer leaves; a click or a key stays. */
  function point(row, column, by) {
    if (by === "pointer" && row === null && column === null) {
      set(...(state.pinned ?? [null, null]));
      return;
    }
    if (by !== "pointer") state.pinned = row === null && column === null ? null : [row, column];
    set(row, column);
    if (by === "key") get("told").textContent = get("reading").textContent;
  }

  function set(row, column) {
    Object.assign(at, { row, column });
    maps[0].mark(row, column);
    if (views.length === 2) {
      const { rows, columns } = views[1].matrix;
      maps[1].mark(row < rows ? row : null, column < columns ? column : null);
    }
    text.mark(row, column);
    links.mark(row, column);
    changed.mark(row, column);
    if (row !== null) get("step").value = String(row + 1);
    get("step-value").textContent =
      row === null ? "no step chosen" : `${row + 1}: ${visible(views[0].target[row])}`;
    get("reading").textContent = reading(row, column);
  }

  function reading(row, column) {
    const { matrix, target, source } = views[0];
    if (row === null && column === null) return "Point at a word or a cell, or use the arrow keys.";
    const quoted = (token) => {
      const whole = visible(token);
      return `\u201c${whole.length > 40 ? `${whole.slice(0, 39)}\u2026` : whole}\u201d`;
    };
    const best = (values, tokens) =>
      largest(values, 3)
        .map((place) => `${quoted(tokens[place])} ${shown(values[place])}`)
        .join(", ") || "nothing";
    if (row === null) {
      const who = best(columnOf(matrix, column), target);
      return `Source ${column + 1}, ${quoted(source[column])}, is looked at most by ${who}.`;
    }
    const values = rowOf(matrix, row);
    const most = `Step ${row + 1}, ${quoted(target[row])}, looks most at ${best(values, source)}.`;
    if (column === null) return most;
    const cells = views.map(({ matrix: one, label }) => {
      const inside = row < one.rows && column < one.columns;
      const value = inside ? shown(one.cells[row * one.columns + column]) : "no such cell";
      return views.length === 2 ? `${label}: ${value}` : value;
    });
    return `${quoted(target[row])} at ${quoted(source[column])}: ${cells.join("; ")}. ${most}`;
  }

  function goTo(place) {
    const { model } = records[state.record];
    const name = titles[(place + titles.length) % titles.length];
    const same = records.findIndex((one) => one.name === name && one.model === model);
    state.pinned = null;
    state.record = same >= 0 ? same : records.findIndex((one) => one.name === name);
    if (state.other !== null) {
      const kept = records[state.other.record].model;
      const again = records.findIndex((one) => one.name === name && one.model === kept);
      state.other.record = again >= 0 ? again : state.record;
    }
    refresh();
  }

  const on = (id, kind, act) => get(id).addEventListener(kind, act);
  on("sentence", "change", () => goTo(Number(get("sentence").value)));
  on("previous", "click", () => goTo(titles.indexOf(records[state.record].name) - 1));
  on("next", "click", () => goTo(titles.indexOf(records[state.record].name) + 1));
  for (const [id, name] of [
    ["model", "record"],
    ["layer", "layer"],
    ["head", "head"],
  ]) {
    on(id, "change", () => {
      state[name] = Number(get(id).value);
      refresh();
    });
    on(`other-${id}`, "change", () => {
      state.other[name] = Number(get(`other-${id}`).value);
      refresh();
    });
  }
  on("compare", "change", () => {
    // Another model at the same head is what is most often asked for; else the next head.
    const record = records[state.record];
    const rival = siblings().find((one) => one !== record);
    const next = (state.head + 1) % record.heads.length;
    state.other = get("compare").checked
      ? {
          record: records.indexOf(rival ?? record),
          layer: state.layer,
          head: rival ? state.head : next,
        }
      : null;
    refresh();
  });
  on("difference", "change", refresh);
  on("threshold", "input", threshold);
  on("step", "input", () => point(Number(get("step").value) - 1, null, "key"));
  on("theme", "click", () => {
    document.documentElement.dataset.theme = theme() === "dark" ? "light" : "dark";
    toggled();
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", toggled);

  function toggled() {
    get("theme").textContent = theme() === "dark" ? "Light" : "Dark";
    get("theme").setAttribute("aria-label", `Switch to ${theme() === "dark" ? "light" : "dark"}`);
    refresh();
  }

  let printing = false;
  let kept;
  addEventListener("beforeprint", () => {
    if (printing) return; // a preview may announce itself twice
    printing = true;
    kept = document.documentElement.dataset.theme;
    document.documentElement.dataset.theme = "light";
    refresh();
  });
  addEventListener("afterprint", () => {
    printing = false;
    if (kept === undefined) delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = kept;
    refresh();
  });
  let wide = innerWidth;
  addEventListener("resize", () => {
    if (innerWidth === wide) return; // a phone's address bar only changes the height
    wide = innerWidth;
    refresh();
  });
  get("explorer").hidden = false;
  get("loading").remove();
  toggled();
}
