// Who helped the policy: takeovers of a planner, and suggestions of models, per episode; for the page and for the report.

import { chart } from "./chart.js";
import { make, section } from "./dom.js";

const PARTS = [["Takeovers", "takeovers", "A planner acted in the policy's place. The learner does not learn from its steps."],
  ["Suggestions", "suggestions", "Models advised the policy, which always acted itself."]];

// One section for each kind of help that a run had; none for a run without.
export function assistance(rows) {
  return PARTS.flatMap(([title, word, note]) => {
    const names = [...new Set(rows.flatMap((row) => Object.keys(row.metrics)))].filter((name) => kind(name, word)).sort();
    const points = (name) => rows.map((row) => [row.epoch, row.metrics[name]]);
    const counts = names.filter((name) => !name.startsWith("takeover_success"));
    const drawn = [chart(`${word} per episode`, counts.map((name) => ({ label: label(name), points: points(name) })), { low: 0 }),
      chart("share of takeovers that reached their goal", names.filter((name) => !counts.includes(name))
        .map((name) => ({ label: label(name), points: points(name) })), { low: 0, high: 1 })].filter(Boolean);
    return drawn.length ? [section(title, [make("div", drawn, "charts")], note)] : [];
  });
}

const kind = (name, word) => name.endsWith("_mean") && (name.startsWith(word) || (word === "takeovers" && name.startsWith("takeover_success")));
const label = (name) => name.replace(/_mean$/, "").replaceAll("_", " ");
