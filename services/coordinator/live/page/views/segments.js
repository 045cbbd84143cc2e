// The recorded segments of an epoch as pictures, sorted and filtered; a click opens one.

import { get, runPath } from "../parts/api.js";
import { count, counted, make, number, renderIf, section } from "../parts/dom.js";
import { openSegment } from "../parts/drawer.js";
import { keyFrame } from "../parts/pictures.js";
import { rows, state } from "../parts/state.js";

const PAGE = 200, MOST = 1000, SHOWN = 60;
const high = (name) => (a, b) => (b[name] ?? -1) - (a[name] ?? -1);
const SORTS = { "highest score": high("score"), "lowest score": (a, b) => (a.score ?? 9) - (b.score ?? 9),
  disagreement: high("disagreement"), novelty: high("novelty"), reward: high("reward"),
  "order of play": (a, b) => a.segment.localeCompare(b.segment) };
const FILTERS = { all: () => true, judged: (one) => one.status === "judged", "milestone gained": (one) => one.milestones > 0,
  "not judged": (one) => one.status !== "judged", "votes differ": (one) => one.disagreement > 0 };
const NOTHING = { list: null, whole: true, error: "", many: SHOWN };
const parts = {}, shown = { run: "", epoch: null, asked: false, sort: "highest score", filter: "all", ...NOTHING };
let reads = 0;   // an answer to an earlier question may come later

function build() {
  Object.assign(parts, { choices: make("div", [], "row"), gallery: make("div") });
  shown.asked = false;   // a second look reads the segments again
  return [make("section", [make("h2", "Segments"), parts.choices]), parts.gallery];
}

function update() {
  if (shown.run !== state.run) {
    reads += 1;
    Object.assign(shown, { run: state.run, epoch: null, asked: false, ...NOTHING });
  }
  const newest = Math.max(-1, ...state.epochs.keys(), state.progress && state.progress.segments_recorded ? state.progress.epoch : -1);
  if (!shown.asked && newest >= 0) load(shown.epoch ?? newestRecorded());
  renderIf(parts.choices, [shown.run, shown.epoch, newest, shown.sort, shown.filter], () => choices(newest));
  renderIf(parts.gallery, [shown.run, shown.epoch, shown.list, shown.error, shown.sort, shown.filter, shown.many], gallery);
}

// With `judge_interval`, some epochs record nothing.
const newestRecorded = () => rows().findLast((row) => row.segments_recorded)?.epoch ?? 0;

async function load(epoch) {
  const read = reads += 1;
  Object.assign(shown, { epoch, asked: true, error: "", ...(epoch === shown.epoch ? {} : NOTHING) });
  update();
  const found = await list(shown.run, epoch).catch((error) => ({ ...NOTHING, error: error.message }));
  if (read !== reads) return;
  Object.assign(shown, found);
  update();
}

// At most about `MOST` segments of an epoch, by name.
async function list(run, epoch) {
  const found = [];
  let after = "";
  while (after !== null && found.length < MOST) {
    const page = await get(`${runPath(run)}/epochs/${epoch}/gallery?limit=${PAGE}${after && `&after=${after}`}`);
    found.push(...page.items);
    after = page.next;
  }
  return { list: found, whole: after === null };
}

function choice(label, options, value, change) {
  const list = make("select", options.map((one) => make("option", String(one), "", { value: String(one) })), "", { id: label });
  list.value = String(value);
  list.addEventListener("change", () => { change(list.value); update(); });
  return make("label", [`${label} `, list]);
}

function choices(newest) {
  if (newest < 0) return [make("p", "No segment is recorded yet.", "quiet")];
  const epochs = Array.from({ length: newest + 1 }, (_, at) => newest - at), again = make("button", "Read again", "", { type: "button", id: "again" });
  again.addEventListener("click", () => load(shown.epoch));
  return [choice("Epoch", epochs, shown.epoch, (value) => load(Number(value))),
    choice("Sort by", Object.keys(SORTS), shown.sort, (value) => { shown.sort = value; }),
    choice("Show", Object.keys(FILTERS), shown.filter, (value) => { shown.filter = value; }), again];
}

// Segments with the same start and the same actions are one card with a count.
function collapsed(list) {
  const plays = new Map();
  for (const one of list) {
    const known = plays.get(one.play);
    if (known) known.times += 1;
    else plays.set(one.play, { one, times: 1 });
  }
  return [...plays.values()];
}

function gallery() {
  if (shown.error) return [section("The segments cannot be shown", [make("p", shown.error, "bad")])];
  if (shown.epoch === null) return [];
  if (!shown.list) return [section("Loading…", [])];
  const found = collapsed(shown.list.filter(FILTERS[shown.filter]).sort(SORTS[shown.sort]));
  if (!shown.list.length) return [section("No segment", [make("p", whyEmpty(), "quiet")])];
  if (!found.length) return [section("No segment matches", [make("p", "Choose another epoch or filter.", "quiet")])];
  const cards = make("ul", found.slice(0, shown.many).map(card), "gallery");
  const note = `Of this epoch, the first ${count(shown.list.length)} segments by name are shown and sorted.`;
  return [...(shown.whole ? [] : [make("p", note, "quiet")]), cards, ...(found.length > shown.many ? [more(found.length)] : [])];
}

function whyEmpty() {
  const row = state.epochs.get(shown.epoch);
  if (!row) return "No segment of this epoch is recorded yet.";
  return row.segments_recorded ? "No recorded segment can be read." : "No segment of this epoch was recorded.";
}

function card({ one, times }) {
  const button = make("button", [keyFrame(state.run, one, Math.max(0, one.frames - 1), `last picture of ${one.segment}`),
    make("strong", one.score === null ? one.status || "not judged" : number(one.score)), make("span", notes(one, times), "quiet")],
  "card", { type: "button" });
  button.addEventListener("click", () => openSegment(shown.run, one));
  return make("li", [button]);
}

const notes = (one, times) => [one.segment, counted(one.rooms, "room"),
  one.milestones ? counted(one.milestones, "milestone") : "", one.disagreement ? `votes differ by ${one.disagreement}` : "",
  times > 1 ? `${times} identical` : ""].filter(Boolean).join(" · ");

function more(all) {
  const button = make("button", `Show ${Math.min(SHOWN, all - shown.many)} more of ${all}`, "", { type: "button", id: "more" });
  button.addEventListener("click", () => { shown.many += SHOWN; update(); });
  return button;
}

export const segments = { id: "segments", title: "Segments", build, update };
