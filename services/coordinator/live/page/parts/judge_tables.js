// How good and how expensive the judges are, in charts and tables, for the page and for the report.

import { chart } from "./chart.js";
import { count, make, number, percent, section, table } from "./dom.js";

const SHOWN = 30;

const share = (part_, whole) => (whole ? part_ / whole : null);
const known = (values) => values.filter((value) => value !== null && value !== undefined);
const mean = (values) => (known(values).length ? known(values).reduce((a, b) => a + b, 0) / known(values).length : null);
const latency = (usage) => share(usage.seconds, usage.calls);

// The sections about the judges, from the rows of judged epochs.
export function judgeTables(judged) {
  const names = [...new Set(judged.flatMap((row) => Object.keys(row.judging.judges)))].sort();
  const lines = (value) => names.map((name) => ({ label: name, points: judged.map((row) => [row.epoch, of(row, name, value)]) }));
  const charts = make("div", [
    chart("success rate", lines((one) => share(one.judged, one.judged + one.abstained)), { low: 0, high: 1 }),
    chart("Krippendorff's alpha", lines((one) => mean(Object.values(one.alpha))), { mark: ["chance", 0] }),
    chart("latency", lines((one) => latency(one.usage)), { unit: "seconds per call", low: 0 }),
    chart("drift on the canary set", lines((one) => one.drift), { mark: ["no drift", 0] }),
  ], "charts");
  const newest = [...judged].reverse().slice(0, SHOWN);
  return [section("Judges", [charts, table(["epoch", "judge", "judged", "success", "votes", "unanimous", "alpha", "drift",
    "s per call", "calls", "tokens in", "tokens out", "money"], newest.flatMap(judgeRows), `Each judge in ${which(judged)}, newest first`)]),
  ...pairs(newest.filter((row) => row.judging.pairs.compared), which(judged))];
}

const which = (judged) => (judged.length > SHOWN ? `the newest ${SHOWN} of ${judged.length} judged epochs` : "each epoch");

function pairs(compared, epochs) {
  if (!compared.length) return [];
  const lines = compared.map((row) => {
    const found = row.judging.pairs;
    return [row.epoch, found.compared, percent(found.consistent), number(found.bias), number(found.kappa_with_votes)];
  });
  return [section("Pairs", [table(["epoch", "compared", "consistent", "position bias", "kappa with votes"], lines,
    `Clips compared directly in ${epochs}, in both orders`)])];
}

function of(row, name, value) {
  const one = row.judging.judges[name];
  return one ? value(one) : null;
}

function judgeRows(row) {
  return Object.entries(row.judging.judges).map(([name, one]) => [row.epoch, name, count(one.judged),
    percent(share(one.judged, one.judged + one.abstained)), count(one.votes), percent(one.unanimous),
    number(mean(Object.values(one.alpha))), number(one.drift), number(latency(one.usage)), count(one.usage.calls),
    count(one.usage.prompt_tokens), count(one.usage.output_tokens), number(one.usage.money)]);
}
