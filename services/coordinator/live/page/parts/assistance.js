// Who helped the policy: takeovers of a planner, suggestions of models, and calls of these models; for the page and for the report.

import { chart } from "./chart.js";
import { make, number, percent, section, table } from "./dom.js";

const SUCCESSES = ["cleared", "finished"];
const TAKEOVERS = "A planner acted in the policy's place. The learner does not learn from its steps.";
const SUGGESTIONS = "Models advised the policy, which always acted itself.";
const words = (name) => name.replaceAll("_", " ");
const sum = (counts) => Object.values(counts).reduce((all, one) => all + one, 0);

// The charts of finished epochs: one section for each kind of help that a run had; none for a run without.
export function assistance(rows) {
  const helped = rows.filter((row) => row.assistance);
  return [part("Takeovers", TAKEOVERS, [chart("takeovers of an epoch, by ending", takeovers(helped), { low: 0 }),
    chart("share of takeovers that reached their goal", successes(helped), { low: 0, high: 1 })]),
  part("Suggestions", SUGGESTIONS, [chart("suggestions of an epoch, by outcome", suggestions(helped), { low: 0 })]),
  part("Models of planner and guidance", "Questions of planner and guidance to models.", [
    chart("questions of an epoch, by outcome", questions(helped), { low: 0 }),
    chart("mean time of an answer", times(helped), { unit: "s", low: 0 })])].flat();
}

// The epoch that plays now, as the driver reports it every few seconds: sums over its ended episodes.
export function assistanceNow(assistance) {
  if (!assistance) return [];
  const { takeovers: begun, suggestions: made, calls } = assistance;
  const lines = [...Object.entries(begun).map(([need, endings]) => line(`takeovers, ${need}`, endings, share(endings))),
    ...(Object.keys(made).length ? [line("suggestions", made, "")] : []),
    ...Object.entries(calls).map(([mode, found]) => line(`questions, ${mode}`, found.outcomes, state(found)))];
  return [section("Planner and guidance", [table(["kind", "number", "by outcome", "note"], lines,
    "This epoch so far: takeovers and suggestions of ended episodes, questions to models")])];
}

function line(name, counts, note) {
  const outcomes = Object.entries(counts).filter(([, count]) => count).map(([outcome, count]) => `${words(outcome)} ${count}`);
  return [name, sum(counts), outcomes.join(", ") || "none", note];
}

const reached = (endings) => SUCCESSES.reduce((all, ending) => all + (endings[ending] || 0), 0);
const share = (endings) => (sum(endings) ? `${percent(reached(endings) / sum(endings))} reached their goal` : "");
const state = (found) => [found.answer_seconds_mean === null ? "" : `${number(found.answer_seconds_mean)} s an answer`,
  found.breaker === "closed" ? "" : `breaker ${found.breaker}: the route rests`].filter(Boolean).join(", ");

function part(title, note, charts) {
  const drawn = charts.filter(Boolean);
  return drawn.length ? [section(title, [make("div", drawn, "charts")], note)] : [];
}

// A line for each name that occurs in any epoch. `found` gives the values of a row by name.
function lines(rows, found) {
  const each = rows.map((row) => [row.epoch, found(row.assistance)]);
  const names = [...new Set(each.flatMap(([, values]) => Object.keys(values)))].sort();
  return names.map((name) => ({ label: name, points: each.map(([epoch, values]) => [epoch, values[name]]) }));
}

const occurring = (every) => every.filter((one) => one.points.some(([, y]) => y));
const takeovers = (rows) => occurring(lines(rows, ({ takeovers: all }) => flat(all, (endings) => endings)));
const successes = (rows) => lines(rows, ({ takeovers: all }) => Object.fromEntries(Object.entries(all)
  .filter(([, endings]) => sum(endings)).map(([need, endings]) => [need, reached(endings) / sum(endings)])));
const suggestions = (rows) => lines(rows, ({ suggestions: all }) => Object.fromEntries(Object.entries(all).map(([name, count]) => [words(name), count])));
const questions = (rows) => occurring(lines(rows, ({ calls }) => flat(calls, (found) => found.outcomes)));
const times = (rows) => lines(rows, ({ calls }) => Object.fromEntries(Object.entries(calls).map(([mode, found]) => [mode, found.answer_seconds_mean])));

// {dialog: {finished: 2}} as {"dialog finished": 2}.
function flat(groups, counts) {
  return Object.fromEntries(Object.entries(groups).flatMap(([group, found]) =>
    Object.entries(counts(found)).map(([name, count]) => [`${group} ${words(name)}`, count])));
}
