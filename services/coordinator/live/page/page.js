// The live page: login, the header, and the view that the address selects (`#/learning`).

import { get, keepToken, readToken, session } from "./parts/api.js";
import { showBanners } from "./parts/banners.js";
import { byId, duration, make, renderIf } from "./parts/dom.js";
import { leave, listRuns, select } from "./parts/runs.js";
import { changed, listen, state } from "./parts/state.js";
import { stop, whenEnded } from "./parts/stream.js";
import { configuration } from "./views/configuration.js";
import { judges } from "./views/judges.js";
import { learning } from "./views/learning.js";
import { logs } from "./views/logs.js";
import { map } from "./views/map.js";
import { overview } from "./views/overview.js";
import { segments } from "./views/segments.js";
import { startRun } from "./views/start.js";

const VIEWS = [overview, learning, segments, map, judges, configuration, logs, startRun];
const STALE_S = 10, LOST_S = 30, RETRY_MS = 2000, LIST_MS = 300_000, EMPTY_MS = 3000;
const NO_LONGER = "The token is no longer valid.";
const CLASSES = { running: "good", created: "wait", stopping: "wait", stopped: "wait", finished: "good", failed: "bad" };
let view = null, retry = 0;

const allowed = () => VIEWS.filter((one) => !one.operators || session.role === "operator");
const selected = () => allowed().find((one) => location.hash === `#/${one.id}`) || VIEWS[0];

function showView() {
  const next = selected();
  if (view !== next) {
    view = next;
    byId("view").replaceChildren(...view.build());
    document.title = `${view.title} · zelda-rlaif`;
  }
  showLinks();
  view.update();
}

// The links stay the same elements, so that a keyboard keeps its place.
function showLinks() {
  const links = allowed().map(({ id, title }) => [id, title]);
  renderIf(byId("nav"), links, () => links.map(([id, title]) => make("a", title, "", { href: `#/${id}` })));
  for (const link of byId("nav").children) {
    if (link.hash === `#/${view.id}`) link.setAttribute("aria-current", "page");
    else link.removeAttribute("aria-current");
  }
}

function showHeader() {
  const record = state.record;
  byId("state").textContent = record ? record.state : "no run";
  byId("state").className = `badge ${(record && state.connected && CLASSES[record.state]) || ""}`;
}

function showAge() {
  const seconds = state.updated ? Math.max(0, Math.round((Date.now() + session.clockSkew - state.updated) / 1000)) : null;
  const ended = state.record && ["finished", "failed", "stopped"].includes(state.record.state);
  const text = state.connected ? seconds === null ? "no update yet" : `last update ${duration(seconds)} ago` : "connection lost";
  byId("age").textContent = text;
  const age = seconds === null || ended ? "" : seconds > LOST_S ? "bad" : seconds > STALE_S ? "wait" : "good";
  byId("age").className = `badge ${state.connected ? age : "bad"}`;
}

function show() {
  if (byId("view").hidden) return;
  showHeader();
  showAge();
  showBanners();
  showView();
}

function showLogin(reason) {
  stop();
  byId("login").hidden = false;
  byId("view").hidden = byId("nav").hidden = true;
  byId("refused").textContent = reason;
}

async function open() {
  clearTimeout(retry);   // the user may press Open before the retry
  if (!readToken()) return showLogin("");
  try {
    session.role = (await get("session")).role;
    await listRuns();
  } catch (error) {
    if (error.status === 401) return showLogin("The token is unknown.");
    retry = setTimeout(open, RETRY_MS);   // the token may be right: the coordinator starts, or its store is not available
    return showLogin(`The coordinator is not available (${error.message}) This page tries again every 2 s.`);
  }
  byId("login").hidden = true;
  byId("view").hidden = byId("nav").hidden = false;
  show();
}

byId("runs").addEventListener("change", () => byId("runs").value && select(byId("runs").value));
byId("login").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = byId("token").value.trim();
  if (token) keepToken(token);
  open();
});
async function refresh() {
  if (byId("view").hidden || document.hidden) return;
  await listRuns().catch((error) => error.status === 401 && showLogin(NO_LONGER));
}
whenEnded(() => showLogin(NO_LONGER), () => { leave(); refresh(); });
addEventListener("hashchange", () => { if (location.hash.startsWith("#token=")) open(); else show(); });
document.addEventListener("visibilitychange", refresh);
byId("runs").addEventListener("focus", refresh);   // the list is as new as the look at it; idle pages must cost little
matchMedia("(prefers-color-scheme: dark)").addEventListener("change", changed);   // charts hold their colours
listen(show);
setInterval(showAge, 1000);
setInterval(refresh, LIST_MS);
setInterval(() => state.run || refresh(), EMPTY_MS);   // the first run must appear soon
open();
