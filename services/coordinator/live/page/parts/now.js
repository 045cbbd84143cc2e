// A live picture of one environment with the state of its game. It asks only while it is on the page and visible.

import { get, runPath } from "./api.js";
import { make, number, renderIf, section } from "./dom.js";
import { state } from "./state.js";

const EVERY_MS = 500, RETRY_MS = 3000, STALE_S = 10;
const QUARTERS = 4;   // of a heart

// Shows the selected run in `place` until it leaves the page.
export async function watchNow(place) {
  while (place.isConnected) {
    const active = state.record && ["created", "running", "stopping"].includes(state.record.state);
    let wait = EVERY_MS;
    if (!active) place.replaceChildren();
    else if (!document.hidden && state.connected) wait = await show(place, state.run);
    await new Promise((resolve) => setTimeout(resolve, wait));
  }
}

async function show(place, run) {
  try {
    const now = await get(`${runPath(run)}/now`);
    if (run === state.run) update(place, now);
    return EVERY_MS;
  } catch {
    return RETRY_MS;   // the banner says that the connection is lost
  }
}

function update(place, { frame, age_s: age }) {
  if (!place.firstChild) place.replaceChildren(build());
  const part = (name) => place.querySelector(`[data-part=${name}]`);
  part("status").textContent = status(frame, age);
  part("screen").hidden = part("about").hidden = !frame;
  if (!frame) return;
  part("screen").src = `data:image/png;base64,${frame.png}`;
  part("screen").alt = `room ${frame.room} of group ${frame.group}`;
  part("facts").replaceChildren(...facts(frame));
  renderIf(part("milestones"), frame.milestones, () => milestones(frame.milestones));   // it stays open
}

function build() {
  return section("Live", [make("p", "", "quiet", { "data-part": "status" }),
    make("div", [make("img", undefined, "screen", { "data-part": "screen", alt: "", hidden: "" }),
      make("div", [make("dl", [], "facts", { "data-part": "facts" }), make("details", [], "", { "data-part": "milestones" })], "",
        { "data-part": "about", hidden: "" })], "live")]);
}

function status(frame, age) {
  if (!frame) return "The picture appears within seconds while the agent plays.";
  const place = `Environment 0 of runner ${frame.runner}, episode ${frame.episode}, step ${frame.step}`;
  return age > STALE_S ? `${place}; no new picture for ${Math.round(age)} s: the agent is not playing now.` : place;
}

function facts(frame) {
  const actor = frame.checkpoint ? `policy ${frame.checkpoint.slice(0, 8)}` : "untrained policy";
  const items = Object.entries(frame.items).map(([name, value]) => (value > 1 ? `${name} ${value}` : name)).join(", ");
  const lines = [["room", `${frame.room} of group ${frame.group}`],
    ["health", `${frame.health / QUARTERS} of ${frame.max_health / QUARTERS} hearts`], ["items", items || "none"],
    ["reward of the episode", number(frame.reward)], ["who acts", actor],
    ["shaped by", frame.reward_model ? `reward model ${frame.reward_model.slice(0, 8)}` : "no reward model"]];
  return lines.map(([name, value]) => make("div", [make("dt", name), make("dd", value)]));
}

function milestones(every) {
  const done = every.filter((one) => one.reached).length;
  const list = every.map((one) => make("li", `${one.reached ? "✓" : "○"} ${one.name}`, one.reached ? "good" : "quiet"));
  return [make("summary", `${done} of ${every.length} milestones`), make("ul", list, "milestones")];
}
