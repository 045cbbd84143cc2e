// The votes of one judge on a segment, with its reasons; for the page and for the report.

import { make } from "./dom.js";

// `gated`: the score's reasons against judges that do not count, by name.
export function judgeVotes(one, gated) {
  const dimensions = Object.entries(one.dimensions).map(([name, dimension]) =>
    make("span", [make("span", name, "quiet"), ` ${dimension.votes.join(" ")}`], "chip"));
  const verdict = dimensions.length ? dimensions : [make("span", one.status, "chip")];
  return make("div", [make("p", [make("strong", one.judge), " ", ...verdict]), ...excluded(gated[one.judge]), ...reasons(one), origin(one)], "judge");
}

const excluded = (against) => against ? [make("p", `not counted: ${against.join(", ")}`, "bad")] : [];

// The prompt's digest shows whether two votes answered the same question.
const origin = (one) => make("p", `${one.model}, route ${one.route}, prompt ${one.prompt.slice(0, 12)}`, "quiet");

const reasons = (one) => [...new Set(one.reasons)].map((reason) => make("p", reason, "reason"));
