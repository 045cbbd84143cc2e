// Rooms as pictures at their places, paler where the agent was seldom; for the page and for the report.
// Of a run with an archive of states: its cells in each room, and a frame around rooms with new ones, the frontier.

import { count, counted, make, section } from "./dom.js";

const COLUMNS = 16;   // a map of the games has 16 rooms a row
const AREAS = ["overworld", "underworld", "tree", "indoors", "dungeon", "dungeon", "side view", "side view"];

const EXPLAINED = "The number in a room counts steps.", WITH_CELLS = "In a room, the number at the right counts steps, that at the left the archive's cells.";

// One section per area. `picture(room, label)` makes the image of a room that has a key frame.
export function roomMap(rooms, note, picture) {
  const most = Math.max(1, ...rooms.map((room) => room.steps));
  const groups = [...new Set(rooms.map((room) => room.group))].sort((a, b) => a - b);
  const reached = archived(rooms), full = [note, reached, reached ? WITH_CELLS : EXPLAINED].filter(Boolean).join(" ");
  return groups.map((group) => area(group, rooms.filter((room) => room.group === group), most, full, picture));
}

function archived(rooms) {
  const reached = rooms.filter((room) => room.cells), total = (name) => reached.reduce((all, room) => all + room[name], 0);
  if (!reached.length) return "";
  const found = total("new_cells") ? `, ${count(total("new_cells"))} of them new: in the framed rooms` : "";
  return `The archive of states has ${counted(total("cells"), "cell")} in ${counted(reached.length, "room")}${found}.`;
}

function area(group, rooms, most, note, picture) {
  const columns = rooms.map((room) => room.room % COLUMNS), lines = rooms.map((room) => Math.floor(room.room / COLUMNS));
  const left = Math.min(...columns), top = Math.min(...lines);
  const cells = rooms.sort((a, b) => a.room - b.room).map((room) => cell(room, room.room % COLUMNS - left, Math.floor(room.room / COLUMNS) - top, most, picture));
  const grid = make("ul", cells, "map");
  grid.style.gridTemplateColumns = `repeat(${Math.max(...columns) - left + 1}, minmax(4.5rem, 10rem))`;
  const name = AREAS[group] || `group ${group}`;
  return section(`${name[0].toUpperCase()}${name.slice(1)}: ${counted(rooms.length, "room")}`, [make("div", [grid], "scroll",
    { tabindex: "0", role: "region", "aria-label": `map of the ${name}, group ${group}` })], note);
}

function cell(room, column, line, most, picture) {
  const share = Math.log1p(room.steps) / Math.log1p(most);
  const label = `room ${room.room}: ${count(room.steps)} steps${room.cells ? `, ${counted(room.cells, "archive cell")}, ${count(room.new_cells)} new` : ""}`;
  const screen = room.picture === null ? make("span", "", "screen") : picture(room, label);
  screen.style.opacity = String(0.25 + 0.75 * share);
  const cells = room.cells ? [make("span", `${count(room.cells)}${room.new_cells ? ` +${count(room.new_cells)}` : ""}`, "cells")] : [];
  const item = make("li", [screen, ...cells, make("span", count(room.steps), "steps")], room.new_cells ? "frontier" : "", { title: label });
  item.style.gridColumn = String(column + 1);
  item.style.gridRow = String(line + 1);
  return item;
}
