// Does the agent learn? The charts of a run, and of other runs beside it.

import { get, runPath } from "../parts/api.js";
import { make, renderIf, section } from "../parts/dom.js";
import { learningCharts } from "../parts/learning_charts.js";
import { rows, state } from "../parts/state.js";

const others = new Map();   // run -> its rows
const parts = {};
let problem = "", reads = 0;

function build() {
  Object.assign(parts, { compare: make("div"), charts: make("div") });
  problem = "";
  for (const run of others.keys()) read(run);   // a second look shows their new epochs
  return [parts.compare, parts.charts];
}

// A run that is shown itself is not beside itself.
const beside = () => new Map([...others].filter(([run]) => run !== state.run));

function update() {
  const own = rows(), shown = beside();
  const names = state.runs.map((run) => run.run).filter((run) => run !== state.run);
  renderIf(parts.compare, [names, [...shown.keys()], problem, reads], () => (names.length ? compare(names, shown) : []));
  renderIf(parts.charts, [state.run, own, [...shown.keys()], reads, matchMedia("(prefers-color-scheme: dark)").matches],
    () => (own.length ? learningCharts(state.run, own, shown) : [section("No epoch has finished yet", [make("p", "Charts begin with the first finished epoch.", "quiet")])]));
}

function compare(names, shown) {
  const list = make("select", [make("option", "add a run", "", { value: "" }),
    ...names.filter((name) => !shown.has(name)).map((name) => make("option", name, "", { value: name }))], "", { id: "compare" });
  list.addEventListener("change", () => list.value && read(list.value));
  const chips = [...shown.keys()].map((name) => {
    const button = make("button", `${name} ×`, "chip", { type: "button", "aria-label": `Remove ${name}` });
    button.addEventListener("click", () => { others.delete(name); update(); });
    return button;
  });
  const failed = problem ? [make("p", problem, "bad", { role: "alert" })] : [];
  return [make("div", [make("label", ["Compare with ", list]), ...chips, ...failed], "compare")];
}

async function read(run) {
  try {
    others.set(run, await get(`${runPath(run)}/epochs`));
    problem = "";
  } catch (error) {
    if (error.status === 404) others.delete(run);   // it was deleted
    problem = error.message;
  }
  reads += 1;
  update();
}

export const learning = { id: "learning", title: "Learning", build, update };
