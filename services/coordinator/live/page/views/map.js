// Where the agent was: rooms as pictures, darker where it was seldom; per epoch, and added up over epochs.

import { get, runPath } from "../parts/api.js";
import { count, counted, make, renderIf, section } from "../parts/dom.js";
import { keyFrame } from "../parts/pictures.js";
import { roomMap } from "../parts/room_map.js";
import { rows, state } from "../parts/state.js";

const TOTAL_EPOCHS = 12;   // read for the total: an even sample
const parts = {}, shown = { run: "", epoch: null, map: null, error: "", asked: false };
let reads = 0;   // an answer to an earlier question may come later

function build() {
  Object.assign(parts, { choice: make("div", [], "row"), map: make("div") });
  shown.asked = false;   // a second look reads the map again
  return [make("section", [make("h2", "Map"), parts.choice]), parts.map];
}

function update() {
  if (shown.run !== state.run) {
    reads += 1;
    Object.assign(shown, { run: state.run, epoch: null, map: null, error: "", asked: false });
  }
  const epochs = rows().map((row) => row.epoch);
  if (!shown.asked && epochs.length) load(shown.epoch ?? String(newestRecorded()));
  renderIf(parts.choice, [shown.run, shown.epoch, epochs], () => choice(epochs));
  renderIf(parts.map, [shown.run, shown.epoch, shown.map, shown.error], draw);
}

// With `judge_interval`, some epochs record nothing.
const newestRecorded = () => (rows().findLast((row) => row.segments_recorded) ?? rows().at(-1)).epoch;

function choice(epochs) {
  if (!epochs.length) return [make("p", "No epoch has finished yet.", "quiet")];
  const list = make("select", [make("option", "all epochs", "", { value: "all" }),
    ...[...epochs].reverse().map((epoch) => make("option", `epoch ${epoch}`, "", { value: String(epoch) }))], "", { id: "shown-epoch" });
  list.value = shown.epoch;
  list.addEventListener("change", () => load(list.value));
  const again = make("button", "Read again", "", { type: "button", id: "again" });
  again.addEventListener("click", () => load(shown.epoch));
  return [make("label", ["Show ", list]), again, make("span", best(), "quiet")];
}

function best() {
  const of = (row, name) => row.metrics[name] ?? 0;
  const [deepest] = rows().sort((a, b) => of(b, "milestones_max") - of(a, "milestones_max") || of(b, "rooms_max") - of(a, "rooms_max"));
  const most = `${counted(of(deepest, "milestones_max"), "milestone")} and ${counted(of(deepest, "rooms_max"), "room")}`;
  return `Most in an episode of training: ${most}, in epoch ${deepest.epoch}.`;   // perhaps in two episodes of it
}

async function load(choice_) {
  const read = reads += 1;
  Object.assign(shown, { epoch: choice_, asked: true, error: "", ...(choice_ === shown.epoch ? {} : { map: null }) });
  update();
  const found = await mapOf(shown.run, choice_).catch((error) => ({ map: null, error: error.message }));
  if (read !== reads) return;
  Object.assign(shown, found);
  update();
}

async function mapOf(run, choice_) {
  const every = rows().map((row) => row.epoch), step = Math.ceil(every.length / TOTAL_EPOCHS);
  const wanted = choice_ === "all" ? every.filter((_, at) => (every.length - 1 - at) % step === 0) : [Number(choice_)];
  const maps = await Promise.all(wanted.map((epoch) => get(`${runPath(run)}/epochs/${epoch}/rooms`)));
  return { map: sum(maps, wanted.length < every.length && choice_ === "all") };
}

function sum(maps, sampled) {
  const rooms = new Map();
  for (const room of maps.flatMap((one) => one.rooms)) {   // oldest first: the newest epoch's archive holds the older ones'
    const key = `${room.group}:${room.room}`, known = rooms.get(key);
    const { cells, new_cells } = room;
    rooms.set(key, { ...known, ...room, ...(room.picture === null && known ? known : {}), cells, new_cells, steps: (known?.steps || 0) + room.steps });
  }
  const total = (name) => maps.reduce((all, one) => all + one[name], 0);
  return { rooms: [...rooms.values()], read: total("read"), recorded: total("recorded"), epochs: maps.length, sampled };
}

function draw() {
  if (shown.error) return [section("The map cannot be shown", [make("p", shown.error, "bad")])];
  if (!shown.map) return shown.epoch === null ? [] : [section("Loading…", [])];
  if (!shown.map.rooms.length) {
    const why = shown.map.recorded ? "No recorded segment can be read." : "No segment was recorded.";
    return [section("No room", [make("p", why, "quiet")])];
  }
  const read = `From ${count(shown.map.read)} of ${count(shown.map.recorded)} recorded segments`;
  const note = shown.map.sampled ? `${read} of ${shown.map.epochs} epochs, an even sample.` : `${read}.`;
  return roomMap(shown.map.rooms, note, (room, label) => keyFrame(state.run, room, room.picture, label));
}

export const map = { id: "map", title: "Map", build, update };
