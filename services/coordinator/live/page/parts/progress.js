// Where the run is: the stages of an epoch, figures, and one place for each epoch. Epochs count from 0 everywhere.

import { count, duration, make, number, percent, section } from "./dom.js";
import { state } from "./state.js";

const STAGES = ["starting", "playing", "evaluating", "judging", "teaching"];
const MOST_PLACES = 200;

export function progress(p) {
  const last = p.epochs_planned === null ? "no last epoch planned" : `of 0 to ${p.epochs_planned - 1}`;
  const remaining = p.eta_s === null || p.eta_s === undefined ? "–" : `${p.eta_at_least ? "over " : ""}${duration(p.eta_s)}`;
  const figures = [["epoch", p.epoch, last], ["steps of this epoch", count(p.steps), `of ${count(p.epoch_steps)}`],
    ["speed", count(p.steps_per_s), "steps per second"], ["segments judged", count(p.segments_judged), segments(p)],
    ["votes", count(p.votes), `agreement ${percent(p.agreement)}`],
    ["accuracy", number(p.reward_model_accuracy), "newest reward model"], ["remaining", remaining, "until the run ends"]];
  return section(p.doing, [...(p.stage ? [stages(p)] : []), figureList(figures), ...timeline(p)]);
}

function stages(p) {
  const at = STAGES.indexOf(p.stage);
  return make("ol", STAGES.map((name, place) => {
    const share = place < at ? 1 : place === at ? p.stage_share ?? 0 : 0;
    const bar = make("progress", undefined, "", { max: "1", value: String(share), "aria-label": name });
    return make("li", [make("span", place === at && p.stage_share ? `${name} ${percent(share)}` : name), bar], "",
      place === at ? { "aria-current": "step" } : {});
  }), "stages", { "aria-label": "stages of this epoch" });
}

const segments = (p) => [`of ${count(p.segments_recorded)} recorded`, ...(p.segments_left ? [`${count(p.segments_left)} wait`] : []),
  ...(p.segments_dead ? [`${count(p.segments_dead)} dead`] : [])].join(", ");

function figureList(figures) {
  return make("dl", figures.map(([name, value, note]) =>
    make("div", [make("dt", name), make("dd", String(value)), note ? make("dd", note, "quiet") : null])), "figures");
}

function timeline(p) {
  const planned = p.epochs_planned ?? p.epoch + 1, length = Math.min(planned, MOST_PLACES);
  const first = Math.max(0, Math.min(p.epoch - MOST_PLACES / 2, planned - length));   // the epoch that plays is among them
  const places = Array.from({ length }, (_, at) => {
    const epoch = first + at, row = state.epochs.get(epoch);
    const name = row ? (row.segments_waiting ? "judging" : "done") : p.epoch === epoch && p.state === "running" ? "now" : "planned";
    return make("li", planned <= 40 ? String(epoch) : "", name, { title: `epoch ${epoch}: ${name}` });
  });
  const part = length < planned ? `epochs ${first} to ${first + length - 1} of ${planned}` : "";
  return [make("ol", places, planned > 12 ? "timeline dense" : "timeline", { "aria-label": part || "epochs" }),
    ...(part ? [make("p", part, "quiet", { "aria-hidden": "true" })] : [])];
}
