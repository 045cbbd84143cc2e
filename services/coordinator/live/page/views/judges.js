// How good and how expensive the judges are: success, agreement, drift, bias, latency, tokens, money.

import { make, renderIf, section } from "../parts/dom.js";
import { judgeTables } from "../parts/judge_tables.js";
import { rows, state } from "../parts/state.js";

let part = null;

function build() {
  part = make("div");
  return [part];
}

function update() {
  const judged = rows().filter((row) => row.judging);
  renderIf(part, [state.run, judged.map((row) => row.judging), matchMedia("(prefers-color-scheme: dark)").matches],
    () => (judged.length ? judgeTables(judged) : [section("No judges' report yet", [make("p", "It appears after the first judged epoch.", "quiet")])]));
}

export const judges = { id: "judges", title: "Judges", build, update };
