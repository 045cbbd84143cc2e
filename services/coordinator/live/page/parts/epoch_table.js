// The table of finished epochs. Its last two columns say why: what shaped the epoch, and whether its own model may.

import { count, make, number, percent, table } from "./dom.js";

const COLUMNS = ["epoch", "steps", "speed", "episodes", "segments", "votes", "agreement", "score", "milestones", "shaped by",
  "reward model"];

// `run` has the state and the configuration, which say whether an epoch still gets a reward model.
export function epochTable(rows, run) {
  return table(COLUMNS, [...rows].reverse().map((row) => cells(row, run)), "Finished epochs, newest first; epochs count from 0");
}

// Why the epoch has no reward model of its own: `later`, `unjudged` or `never`.
export function lacksModel(row, run) {
  if (row.epoch % run.config.judge_interval) return "unjudged";
  return ["finished", "stopped", "failed"].includes(run.state) ? "never" : "later";
}

const LACKS = { later: "none yet", unjudged: "none: not judged", never: "none" };

function cells(row, run) {
  const speed = row.steps_per_s === null ? "–" : `${count(row.steps_per_s)}/s`;
  return [row.epoch, count(row.steps), speed, row.episodes, segments(row), count(row.votes), percent(row.agreement),
    number(row.score_mean), milestones(row), shapedBy(row), rewardModel(row, run)];
}

// As the command line: the mean of the evaluation's episodes, beside that of training.
function milestones(row) {
  const evaluated = row.evaluation?.milestones_mean;
  const trained = make("span", `training ${number(row.metrics.milestones_mean)}`, "quiet");
  return evaluated === undefined ? trained : make("span", [make("span", number(evaluated)), trained], "stacked");
}

function segments(row) {
  const others = [["abstained", row.segments_abstained], ["dead", row.segments_dead], ["waiting", row.segments_waiting],
    ["dropped", row.segments_dropped]].filter(([, value]) => value).map(([name, value]) => `${value} ${name}`);
  return [`${row.segments_judged} of ${row.segments_recorded}`, ...others].join(", ");
}

function shapedBy(row) {
  if (row.reward_model) return make("span", `epoch ${row.reward_model_epoch}, ${row.reward_model.slice(0, 8)}`, "good");
  return make("span", row.not_shaped || "not shaped", "why");
}

function rewardModel(row, run) {
  if (row.reward_model_passed === null) return make("span", LACKS[lacksModel(row, run)], "quiet");
  const measured = `accuracy ${number(row.reward_model_accuracy)} on ${count(row.reward_model_pairs)} pairs`;
  const compared = row.reward_model_compared ?? null; // null: ratings alone taught it
  const figure = compared === null ? measured : `${measured}, taught by ${count(compared)} compared pairs`;
  const verdict = row.reward_model_passed ? row.reason || "may shape" : row.reason || "not used";
  return make("span", [make("span", figure, "quiet"), make("span", verdict, row.reason ? "why" : "good")], "stacked");
}
