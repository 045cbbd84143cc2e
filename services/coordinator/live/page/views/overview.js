// What the run does now, what it has done, and why.

import { blobAddress, runPath, session } from "../parts/api.js";
import { assistanceNow } from "../parts/assistance.js";
import { code, make, renderIf, section } from "../parts/dom.js";
import { watchDeadLetters } from "../parts/dead_letters.js";
import { openSegment } from "../parts/drawer.js";
import { epochTable, lacksModel } from "../parts/epoch_table.js";
import { watchNow } from "../parts/now.js";
import { progress } from "../parts/progress.js";
import { rows, state } from "../parts/state.js";
import { votes } from "../parts/votes.js";

const NEWEST_VOTES = 12, NEWEST_EPOCHS = 10, SAVED_MS = 60_000;
let every = false;   // all epochs, instead of the newest
const parts = {};

function build() {
  for (const name of ["now", "live", "epochs", "dead", "votes"]) parts[name] = make("div", [], "", { id: name });
  watchDeadLetters(parts.dead);
  setTimeout(() => watchNow(parts.live));   // once it is on the page
  return Object.values(parts);
}

function update() {
  const finished = rows();
  renderIf(parts.now, [state.run, state.runs.length, state.record, state.progress], () => (state.run ? now() : empty()));
  renderIf(parts.epochs, [state.run, finished, every, state.record && state.record.state],
    () => (state.record ? [section("Epochs", epochs(finished))] : []));
  renderIf(parts.votes, state.scores.slice(0, NEWEST_VOTES), () => newestVotes());
}

function empty() {
  if (state.runs.length) return [];
  const start = session.role === "operator" ? "Type this in a second terminal:" : "An operator starts one with:";
  return [section("No run yet", [make("p", start), make("pre", [code("zelda run start -s world=garden -s epochs=3 --watch")]),
    make("p", "The run appears here by itself.", "quiet"), ...(session.role === "operator" ? [startLink()] : [])])];
}

const startLink = () => make("p", [make("a", "Or start one here", "", { href: "#/start" })]);

function now() {
  const p = state.progress;
  if (!p) return [section("The run starts", [make("p", "Its first figures appear within seconds.", "quiet")])];
  return [progress(p), ...assistanceNow(p.assistance)];
}

function epochs(finished) {
  if (!finished.length) return [make("p", "No epoch has finished yet.", "quiet")];
  const shown = every ? finished : finished.slice(-NEWEST_EPOCHS);
  const buttons = [...(shown.length < finished.length ? [more(finished.length)] : []), download(state.run)];
  return [why(finished.at(-1)), epochTable(shown, state.record), make("div", buttons, "row")];
}

// The report is made on request; a link could not send the token.
function download(run) {
  const button = make("button", "Download the report", "", { type: "button" }), status = make("span", "", "quiet", { role: "status" });
  button.addEventListener("click", async () => {
    button.disabled = true;
    status.textContent = "The report is being made…";
    try {
      const address = await blobAddress(`${runPath(run)}/report`);
      make("a", "", "", { href: address, download: `${run}.html` }).click();
      setTimeout(() => URL.revokeObjectURL(address), SAVED_MS);
      status.textContent = "";
    } catch (error) {
      status.textContent = error.message;
    }
    button.disabled = false;
  });
  return make("span", [button, " ", status]);
}

function more(all) {
  const button = make("button", `Show all ${all} epochs`, "", { type: "button" });
  button.addEventListener("click", () => { every = true; update(); });
  return button;
}

const LACKS = { later: () => "Its own reward model is not trained yet.", never: () => "No reward model was trained on it.",
  unjudged: (epoch) => `Epoch ${epoch} is not judged, so it has no reward model of its own.` };

// The product's central decision, in one sentence each.
function why(row) {
  const shaped = row.reward_model ? `Epoch ${row.epoch} was shaped by the reward model of epoch ${row.reward_model_epoch}.`
    : `Epoch ${row.epoch} was ${row.not_shaped || "not shaped"}.`;
  const model = row.reward_model_passed === null ? LACKS[lacksModel(row, state.record)](row.epoch)
    : row.reason ? `Its own reward model is ${row.reason}.` : "Its own reward model may shape the next epoch.";
  return make("p", `${shaped} ${model}`, "sentence");
}

function newestVotes() {
  if (!state.scores.length) return [];
  const list = make("ol", state.scores.slice(0, NEWEST_VOTES).map((score) => votes(score, (one) => openSegment(one.run, one))), "votes");
  return [section("Votes of the judges", [list], "Newest first; each dimension has one vote from 0 to 5 per sample.")];
}

export const overview = { id: "overview", title: "Overview", build, update };
