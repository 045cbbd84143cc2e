// Charts of every figure of an epoch, for the page and for the report. Bands are 95 % intervals of a mean over episodes.

import { chart } from "./chart.js";
import { make, section } from "./dom.js";

const MAIN = ["milestones_mean", "milestones_max", "return_mean", "rooms_mean", "rooms_max"];
const COLOURS = 8;   // of the style sheet: --c1 to --c8
const NORMAL_95 = 1.96;   // standard errors on either side of a mean

const points = (list, value) => list.map((row) => [row.epoch, value(row)]);
const metric = (name) => (row) => row.metrics[name];
const evaluated = (name) => (row) => row.evaluation && row.evaluation[name];

// The line of each run, and of its evaluation. `runs` is {run, own, others}. Beside others, a run's two lines share a colour.
function lines({ run, own, others }, value, evaluation, error = () => () => undefined) {
  const name = (one, kind) => (others.size ? [one, kind].filter(Boolean).join(", ") : kind || "value");
  return [[run, own], ...others].flatMap(([one, list], at) => {
    const stroke = others.size ? `--c${at % COLOURS + 1}` : undefined;
    const trained = { label: name(one, evaluation && "training"), points: points(list, value), margin: points(list, error(metric)), stroke };
    if (!evaluation) return [trained];
    return [trained, { label: name(one, "evaluation"), points: points(list, evaluation), margin: points(list, error(evaluated)), stroke, dash: [6, 4] }];
  });
}

// Half the width of the 95 % interval of a mean; unknown in runs that did not record the standard error.
const interval = (name) => (of) => {
  const error = of(name.replace(/_mean$/, "_sem"));
  return (row) => (name.endsWith("_mean") && Number.isFinite(error(row)) ? NORMAL_95 * error(row) : undefined);
};

const both = (runs, title, name, options) => chart(title, lines(runs, metric(name), evaluated(name), interval(name)), options);

// The sections of charts of one run, with the rows of `others` (a map from run to rows) beside it.
export function learningCharts(run, own, others = new Map()) {
  const runs = { run, own, others };
  const used = (prefix) => [...new Set(own.flatMap((row) => Object.keys(row.metrics)))].filter((name) => name.startsWith(prefix)).sort();
  const behaviour = used("").filter((name) => name.endsWith("_mean") && !MAIN.includes(name) && !name.includes("/"));
  return [
    section("Progress", [grid([
      both(runs, "milestones per episode", "milestones_mean", { low: 0 }), both(runs, "best milestones of an episode", "milestones_max", { low: 0 }),
      both(runs, "rooms per episode", "rooms_mean", { low: 0 }), both(runs, "return per episode", "return_mean")])],
    "Evaluation begins at the true start, and neither curiosity nor the reward model pays there: its return leaves out the shaping. Bands are 95 % intervals over episodes. Drag to zoom, double-click to reset."),
    section("Judges and reward model", [grid([
      chart("mean score of the judges", lines(runs, (row) => row.score_mean), { low: 0, high: 1 }),
      chart("held-out accuracy of the reward model", lines(runs, (row) => row.reward_model_accuracy), { low: 0, high: 1, mark: ["chance", 0.5] }),
      chart("confident held-out pairs", lines(runs, (row) => row.reward_model_pairs), { low: 0 }),
      chart("agreement of the votes", lines(runs, (row) => row.agreement), { low: 0, high: 1 }),
      chart("speed", lines(runs, (row) => row.steps_per_s), { unit: "steps per second", low: 0 })])]),
    section("Reward terms", [grid([
      chart("return per episode by term, training", used("reward/").map((name) => ({ label: name.slice(7), points: points(own, metric(name)) }))),
      chart("return per episode by term, evaluation", used("reward/").map((name) => ({ label: name.slice(7), points: points(own, evaluated(name)) })))])]),
    section("Learner", [grid(used("learner/").map((name) => chart(words(name.slice(8)), lines(runs, metric(name)))))]),
    section("Behaviour", [grid(behaviour.map((name) => both(runs, words(name.replace(/_mean$/, "")), name)))], "Mean per episode."),
  ];
}

const words = (name) => name.replaceAll("_", " ");
const grid = (figures) => make("div", figures, "charts");
