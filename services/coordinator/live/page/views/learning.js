// Does the agent learn? The charts of a run, and of other runs beside it.

import { get, runPath } from "../parts/api.js";
import { make, renderIf, section } from "../parts/dom.js";
import { learningCharts } from "../parts/learning_charts.js";
import { rows, state } from "../parts/state.js";

const others = new Map();   // run -> its rows
const parts = {};

function build() {
  Object.assign(parts, { compare: make("div", [], "compare"), charts: make("div") });
  return [parts.compare, parts.charts];
}

function update() {
  const own = rows();
  const names = state.runs.map((run) => run.run).filter((run) => run !== state.run);
  renderIf(parts.compare, [names, [...others.keys()]], () => (names.length ? compare(names) : []));
  renderIf(parts.charts, [state.run, own, [...others.keys()], matchMedia("(prefers-color-scheme: dark)").matches],
    () => (own.length ? learningCharts(state.run, own, others) : [section("No epoch has finished yet", [make("p", "Charts begin with the first finished epoch.", "quiet")])]));
}

function compare(names) {
  const list = make("select", [make("option", "add a run", "", { value: "" }),
    ...names.filter((name) => !others.has(name)).map((name) => make("option", name, "", { value: name }))], "", { id: "compare" });
  list.addEventListener("change", () => add(list.value));
  const chips = [...others.keys()].map((name) => {
    const button = make("button", `${name} ×`, "chip", { type: "button", "aria-label": `Remove ${name}` });
    button.addEventListener("click", () => { others.delete(name); update(); });
    return button;
  });
  return [make("label", ["Compare with ", list]), ...chips];
}

async function add(run) {
  if (!run) return;
  others.set(run, await get(`${runPath(run)}/epochs`));
  update();
}

export const learning = { id: "learning", title: "Learning", build, update };
