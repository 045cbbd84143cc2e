// The report of a run: the parts of the page over the data in this file. Needs no server.

import { assistance } from "./parts/assistance.js";
import { fieldText, flat } from "./parts/configuration_fields.js";
import { byId, make, number, percent, section, table } from "./parts/dom.js";
import { epochTable } from "./parts/epoch_table.js";
import { judgeTables } from "./parts/judge_tables.js";
import { judgeVotes } from "./parts/judge_votes.js";
import { learningCharts } from "./parts/learning_charts.js";
import { roomMap } from "./parts/room_map.js";

const MOST_KEYS = 20;   // a damaged bucket must not flood the report with its keys
const data = JSON.parse(byId("data").textContent);

function show() {
  const { epochs: rows, run } = data.summary, judged = rows.filter((row) => row.judging);
  byId("report").replaceChildren(
    section("What the agent played", [plays()]),
    section("Epochs", [rows.length ? epochTable(rows, data.summary) : make("p", "No epoch has finished.", "quiet"), ...unreadable()]),
    ...(rows.length ? learningCharts(run, rows) : []), ...(judged.length ? judgeTables(judged) : []),
    ...assistance(rows), ...rooms(),
    section("Configuration", [table(["field", "value"], flat(data.summary.config).map(([name, value]) => [name, fieldText(value)]),
      "Fields of the configuration")]));
}

function plays() {
  const found = [["first", "The best play of the first judged epoch"], ["best", "The best play"]].filter(([name]) => data[name]);
  if (!found.length) return make("p", "No segment was judged.", "quiet");
  return make("div", found.map(([name, title]) => play(title, data[name])), "plays");
}

function play(title, { scores, video, frames }) {
  const about = `epoch ${scores.epoch} · ${scores.segment} · score ${number(scores.weighted)} · agreement ${percent(scores.agreement)}`;
  return make("article", [make("h3", title), video ? player(video) : make("div", frames.map((frame, at) =>
    make("img", undefined, "screen", { src: frame, alt: `key frame ${at} of ${scores.segment}` })), "frames"),
  make("p", about, "quiet"), ...scores.judges.map((one) => judgeVotes(one, scores.gated))]);
}

function player(address) {
  const video = make("video", undefined, "", { controls: "", loop: "", src: address });
  video.muted = true;
  return video;
}

function unreadable() {
  if (!data.unreadable.length) return [];
  const more = data.unreadable.length - MOST_KEYS;
  return [make("p", "These objects cannot be read and are missing from this report:", "bad"),
    make("ul", [...data.unreadable.slice(0, MOST_KEYS), ...(more > 0 ? [`and ${more} more`] : [])].map((key) => make("li", key)))];
}

function rooms() {
  const { rooms: visits, read, recorded } = data.rooms;
  if (!visits.length) {
    return [section("Map", [make("p", recorded ? "No recorded segment can be read." : "No segment was recorded.", "quiet")])];
  }
  const note = `From ${read} of ${recorded} recorded segments${read < recorded ? ", an even sample" : ""}.`;
  return roomMap(visits, note, (room, label) =>
    make("img", undefined, "screen", { src: data.pictures[`${room.group}:${room.room}`], alt: label }));
}

show();
