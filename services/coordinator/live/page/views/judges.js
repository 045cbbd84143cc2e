// How good and how expensive the judges are: success, agreement, drift, bias, latency, tokens, money; who helped the policy.

import { assistance } from "../parts/assistance.js";
import { make, renderIf, section } from "../parts/dom.js";
import { judgeTables } from "../parts/judge_tables.js";
import { rows, state } from "../parts/state.js";

let part = null;

function build() {
  part = make("div");
  return [part];
}

function update() {
  const every = rows(), judged = every.filter((row) => row.judging);
  renderIf(part, [state.run, every.map((row) => [row.epoch, row.judging]), matchMedia("(prefers-color-scheme: dark)").matches],
    () => [...(judged.length ? judgeTables(judged) : [section("No judges' report yet", [make("p", "It appears after the first judged epoch.", "quiet")])]),
      ...assistance(every)]);
}

export const judges = { id: "judges", title: "Judges", build, update };
