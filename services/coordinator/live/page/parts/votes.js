// The votes on one segment, by judge and dimension, with the judges' reasons.

import { make, number, percent } from "./dom.js";
import { judgeVotes } from "./judge_votes.js";
import { keyFrame } from "./pictures.js";

const MIDDLE = 4;   // of the eight key frames

// The votes beside a picture of the play that they are about; a click on the picture shows all of it.
export function votes(score, open) {
  const button = make("button", [keyFrame(score.run, score, MIDDLE, `segment ${score.segment}`)], "card", { type: "button" });
  button.addEventListener("click", () => open(score));
  const head = make("div", [make("strong", score.segment, "segment"),
    make("span", ` epoch ${score.epoch} · ${score.status} · score ${number(score.weighted)} · agreement ${percent(score.agreement)}`, "quiet")]);
  const text = make("div", [head, ...score.judges.map((one) => judgeVotes(one, score.gated)), score.error ? make("p", score.error, "bad") : null]);
  return make("li", [button, text], score.status);
}
