// Does the agent learn? Charts of every figure of an epoch, and of other runs beside it.

import { get, runPath } from "../parts/api.js";
import { chart } from "../parts/chart.js";
import { make, renderIf, section } from "../parts/dom.js";
import { rows, state } from "../parts/state.js";

const MAIN = ["milestones_mean", "milestones_max", "return_mean", "rooms_mean", "rooms_max"];
const others = new Map();   // run -> its rows
const parts = {};

const points = (list, value) => list.map((row) => [row.epoch, value(row)]);
const metric = (name) => (row) => row.metrics[name];
const evaluated = (name) => (row) => row.evaluation && row.evaluation[name];

function build() {
  Object.assign(parts, { compare: make("div", [], "compare"), charts: make("div") });
  return [parts.compare, parts.charts];
}

function update() {
  const own = rows();
  const names = state.runs.map((run) => run.run).filter((run) => run !== state.run);
  renderIf(parts.compare, [names, [...others.keys()]], () => (names.length ? compare(names) : []));
  renderIf(parts.charts, [state.run, own, [...others.keys()], matchMedia("(prefers-color-scheme: dark)").matches],
    () => (own.length ? charts(own) : [section("No epoch has finished yet", [make("p", "Charts begin with the first finished epoch.", "quiet")])]));
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

// The line of this run, of its evaluation, and of each run beside it.
function lines(own, value, evaluation) {
  const label = others.size ? state.run : evaluation ? "training" : "value";
  const line = [{ label, points: points(own, value) }];
  if (evaluation) line.push({ label: "evaluation", points: points(own, evaluation), dash: [6, 4] });
  for (const [run, list] of others) line.push({ label: run, points: points(list, value) });
  return line;
}

const both = (own, title, name, options) => chart(title, lines(own, metric(name), evaluated(name)), options);

function charts(own) {
  const used = (prefix) => [...new Set(own.flatMap((row) => Object.keys(row.metrics)))].filter((name) => name.startsWith(prefix)).sort();
  const behaviour = used("").filter((name) => name.endsWith("_mean") && !MAIN.includes(name) && !name.includes("/"));
  return [
    section("Progress", [grid([
      both(own, "milestones per episode", "milestones_mean", { low: 0 }), both(own, "best milestones of an episode", "milestones_max", { low: 0 }),
      both(own, "rooms per episode", "rooms_mean", { low: 0 }), both(own, "return per episode", "return_mean")])],
    "Training explores; evaluation plays without exploration. Drag to zoom, double-click to reset."),
    section("Judges and reward model", [grid([
      chart("mean score of the judges", lines(own, (row) => row.score_mean), { low: 0, high: 1 }),
      chart("held-out accuracy of the reward model", lines(own, (row) => row.reward_model_accuracy), { low: 0, high: 1, coin: 0.5 }),
      chart("confident held-out pairs", lines(own, (row) => row.reward_model_pairs), { low: 0 }),
      chart("agreement of the votes", lines(own, (row) => row.agreement), { low: 0, high: 1 }),
      chart("speed", lines(own, (row) => row.steps_per_s), { unit: "steps per second", low: 0 })])]),
    section("Reward terms", [grid([
      chart("return per episode by term, training", used("reward/").map((name) => ({ label: name.slice(7), points: points(own, metric(name)) }))),
      chart("return per episode by term, evaluation", used("reward/").map((name) => ({ label: name.slice(7), points: points(own, evaluated(name)) })))])]),
    section("Learner", [grid(used("learner/").map((name) => chart(words(name.slice(8)), lines(own, metric(name)))))]),
    section("Behaviour", [grid(behaviour.map((name) => both(own, words(name.replace(/_mean$/, "")), name)))], "Mean per episode."),
  ];
}

const words = (name) => name.replaceAll("_", " ");
const grid = (figures) => make("div", figures, "charts");

export const learning = { id: "learning", title: "Learning", build, update };
