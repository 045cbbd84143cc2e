// The votes of one judge on a segment, with its reasons; for the page and for the report.

import { make } from "./dom.js";

export function judgeVotes(one) {
  const dimensions = Object.entries(one.dimensions).map(([name, dimension]) =>
    make("span", [make("span", name, "quiet"), ` ${dimension.votes.join(" ")}`], "chip"));
  const verdict = dimensions.length ? dimensions : [make("span", one.status, "chip")];
  return make("div", [make("p", [make("strong", one.judge), " ", ...verdict]), ...reasons(one), origin(one)], "judge");
}

// The prompt's digest shows whether two votes answered the same question.
const origin = (one) => make("p", `${one.model}, route ${one.route}, prompt ${one.prompt.slice(0, 12)}`, "quiet");

const reasons = (one) => [...new Set(one.reasons)].map((reason) => make("p", reason, "reason"));
