// What must not be overlooked: a lost connection, an unknown run, a failure, an alarm. Each with its sentence.

import { session } from "./api.js";
import { byId, code, make, sentence } from "./dom.js";
import { unknown } from "./runs.js";
import { rows, state } from "./state.js";

let shown = "";

export function showBanners() {
  const banners = [...lost(), ...unknownRun(), ...failure(), ...alarms()];
  const key = JSON.stringify(banners.map((banner) => banner.textContent));
  if (key === shown) return;   // an unchanged banner must not be read aloud again
  shown = key;
  byId("banners").replaceChildren(...banners);
  document.body.classList.toggle("lost", !state.connected);
}

const banner = (kind, title, text, ...more) => make("div", [make("strong", title), ` ${text} `, ...more], `banner ${kind}`);

function lost() {
  if (state.connected) return [];
  const since = new Date(state.lostAt).toLocaleTimeString();
  return [banner("bad", "Connection lost.", `This page shows the state of ${since} and reconnects by itself.`)];
}

function unknownRun() {
  if (!unknown.run) return [];
  return [banner("wait", "Unknown run.", `There is no run ${unknown.run}: select one above, or list them with`,
    code("zelda run list"), ".")];
}

function failure() {
  const record = state.record;
  if (!record || record.state !== "failed") return [];
  const read = session.role === "operator" ? [" or read the ", make("a", "logs", "", { href: "#/logs" })] : [];
  return [banner("bad", "The run has failed.", sentence(record.reason || "The record gives no reason"),
    "Resume it with ", code(`zelda run resume ${record.run}`), ...read, ".")];
}

function alarms() {
  return rows().filter((row) => row.alarm).slice(-3).map((row) => banner("wait", `Alarm after epoch ${row.epoch}.`, row.alarm));
}
