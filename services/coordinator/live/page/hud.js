// The live page of one run. It shows the updates of the stream and their age; a missing value is shown as a dash.
"use strict";

const el = (id) => document.getElementById(id);
const STALE_S = 10, LOST_S = 30, MAX_SCORES = 40;
const state = { token: "", run: "", progress: null, epochs: new Map(), updated: 0, clockSkew: 0, stream: null, retry: 0 };

// The token comes in the fragment of the address, which browsers do not send. It is kept for this tab only.
function readToken() {
  const match = /^#token=(.+)$/.exec(location.hash);
  if (match) {
    sessionStorage.setItem("token", match[1]);
    history.replaceState(null, "", location.pathname + location.search);
  }
  return sessionStorage.getItem("token") || "";
}

async function request(path, signal) {
  const response = await fetch(path, { headers: { Authorization: `Bearer ${state.token}` }, signal });
  const time = Date.parse(response.headers.get("date"));
  if (time) state.clockSkew = time - Date.now();   // the age of an update counts on the clock of the server
  if (response.status === 401) throw new Error("denied");
  if (!response.ok) throw Object.assign(new Error(`the server answered ${response.status}`), { status: response.status });
  return response;
}

function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;   // text only: a judge's reason must not become markup
  if (className) element.className = className;
  return element;
}

const number = (value, digits = 2) => (value === null || value === undefined ? "–" : value.toFixed(digits));

async function listRuns() {
  const runs = (await (await request("/runs?limit=200")).json()).items;
  const wanted = state.run || new URLSearchParams(location.search).get("run");
  const older = !wanted || runs.some((run) => run.run === wanted) ? undefined : await findRun(wanted);
  if (older) runs.push(older);
  el("runs").replaceChildren(...runs.map((run) => {
    const option = make("option", `${run.run} (${run.state})`);
    option.value = run.run;
    return option;
  }));
  const shown = state.run || wanted;   // the user may have selected another run meanwhile
  const found = runs.find((run) => run.run === shown) || runs[0];
  if (found) { el("runs").value = found.run; if (found.run !== state.run || !state.stream) follow(found.run); }
}

// The record of a run that is not among the newest, or undefined if it does not exist.
async function findRun(run) {
  try {
    return (await (await request(`/runs/${encodeURIComponent(run)}`)).json()).record;
  } catch (error) {
    if (error.status === 404 || error.status === 422) return undefined;
    throw error;
  }
}

async function follow(run) {
  if (state.stream) state.stream.abort();
  const stream = state.stream = new AbortController();
  clear(run);
  history.replaceState(null, "", `?run=${encodeURIComponent(run)}`);
  while (!stream.signal.aborted) {
    try {
      const response = await request(`/runs/${run}/events`, stream.signal);
      el("votes").replaceChildren();   // every stream starts with the newest scores, so drop those already shown
      await read(response);
    } catch (error) {
      if (error.message === "denied") return showLogin("The token is no longer valid.");
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

// Remove everything of the previous run: the new one may have no such values for hours.
function clear(run) {
  Object.assign(state, { run, progress: null, epochs: new Map(), updated: 0 });
  for (const id of ["votes", "figures", "doing"]) el(id).replaceChildren();
  Object.assign(el("state"), { textContent: "–", className: "badge", title: "" });
  el("bar").style.width = "0";
  showEpochs();
}

async function read(response) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const match = /^event: (\w+)\ndata: (.*)$/s.exec(block);
      if (match) show(match[1], JSON.parse(match[2]));
    }
  }
}

function show(kind, update) {
  if (kind === "progress") { state.progress = update; state.updated = Date.parse(update.updated); showProgress(update); }
  if (kind === "run") showState(update);
  if (kind === "epoch") { state.epochs.set(update.epoch, update); showEpochs(); }
  if (kind === "score") showScore(update);
}

function showState(record) {
  const classes = { running: "good", created: "wait", stopping: "wait", stopped: "wait", finished: "good", failed: "bad" };
  el("state").textContent = record.state;
  el("state").className = `badge ${classes[record.state]}`;
  el("state").title = record.reason || "";
}

function showProgress(p) {
  el("doing").textContent = p.doing;
  el("bar").style.width = `${Math.min(100, 100 * p.steps / p.epoch_steps)}%`;
  const eta = p.eta_s === null ? "–" : `${Math.floor(p.eta_s / 60)} min ${Math.floor(p.eta_s % 60)} s`;
  const figures = [["epoch", p.epoch], ["planned epochs", p.epochs_planned ?? "∞"], ["steps", `${p.steps} / ${p.epoch_steps}`],
    ["steps per second", number(p.steps_per_s, 0)], ["segments recorded", p.segments_recorded],
    ["judged", p.segments_judged], ["not yet judged", p.segments_left], ["votes", p.votes], ["agreement", number(p.agreement)],
    ["reward-model accuracy", number(p.reward_model_accuracy)], ["remaining time", eta]];
  el("figures").replaceChildren(...figures.map(([name, value]) => {
    const pair = make("div");
    pair.append(make("dt", name), make("dd", value));
    return pair;
  }));
  showTimeline();
}

function showTimeline() {
  const p = state.progress, planned = p ? p.epochs_planned ?? p.epoch + 1 : state.epochs.size;
  el("timeline").replaceChildren(...Array.from({ length: Math.min(planned, 200) }, (_, epoch) => {
    const row = state.epochs.get(epoch);
    const className = row ? (row.segments_waiting ? "judging" : "done") : p && p.epoch === epoch ? "now" : "";
    return make("span", planned <= 40 ? epoch : undefined, className);
  }));
}

function showEpochs() {
  const rows = [...state.epochs.values()].sort((a, b) => a.epoch - b.epoch);
  el("epochs").replaceChildren(...rows.map((row) => {
    const line = make("tr");
    const used = row.reward_model ? `epoch ${row.reward_model_epoch} · ${row.reward_model.slice(0, 8)}` : "none";
    for (const cell of [row.epoch, row.steps, number(row.steps_per_s, 0), row.episodes, row.segments_recorded,
      row.segments_judged, row.segments_abstained, row.segments_dead, row.votes, number(row.agreement),
      number(row.score_mean), used, number(row.reward_model_accuracy)]) line.append(make("td", cell));
    return line;
  }));
  chart("milestones", rows.map((row) => row.metrics.milestones_mean));
  chart("returns", rows.map((row) => row.metrics.return_mean));
  chart("scores", rows.map((row) => row.score_mean));
  chart("accuracy", rows.map((row) => row.reward_model_accuracy));
  showTimeline();
}

function chart(id, values) {
  const svg = el(id), known = values.map((value, x) => [x, value]).filter(([, value]) => Number.isFinite(value));
  svg.setAttribute("viewBox", "0 0 200 80");
  svg.setAttribute("preserveAspectRatio", "none");
  svg.replaceChildren();
  if (!known.length) return;
  const ys = known.map(([, value]) => value), low = Math.min(...ys), high = Math.max(...ys), span = high - low || 1;
  const place = ([x, y]) => [10 + 180 * x / Math.max(1, values.length - 1), 70 - 60 * (y - low) / span];
  const draw = (tag, attributes, text) => {
    const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
    for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
    if (text !== undefined) node.textContent = text;
    svg.append(node);
  };
  draw("polyline", { points: known.map((point) => place(point).join(",")).join(" ") });
  for (const point of known) { const [cx, cy] = place(point); draw("circle", { cx, cy, r: 1.6 }); }
  draw("text", { x: 2, y: 9 }, high.toPrecision(3));
  draw("text", { x: 2, y: 79 }, low.toPrecision(3));
}

function showScore(score) {
  const item = make("li", undefined, score.status);
  const head = make("div", `${score.segment} `);
  head.append(make("small", `epoch ${score.epoch} · ${score.status} · score ${number(score.weighted)} · agreement ${number(score.agreement)}`));
  item.append(head);
  for (const judge of score.judges) {
    const votes = Object.entries(judge.dimensions).map(([name, one]) => `${name} ${one.votes.join(",")}`).join("   ");
    item.append(make("p", `${judge.judge}: ${votes || judge.status}${judge.reasons.length ? ` — ${judge.reasons[0]}` : ""}`));
  }
  if (score.error) item.append(make("p", score.error, "bad"));
  el("votes").prepend(item);
  while (el("votes").children.length > MAX_SCORES) el("votes").lastChild.remove();
}

function showAge() {
  const seconds = state.updated ? Math.max(0, Math.round((Date.now() + state.clockSkew - state.updated) / 1000)) : null;
  const ended = ["finished", "failed", "stopped"].includes(el("state").textContent);
  el("age").textContent = seconds === null ? "no update yet" : `last update ${seconds} s ago`;
  el("age").className = `badge ${seconds === null || ended ? "" : seconds > LOST_S ? "bad" : seconds > STALE_S ? "wait" : "good"}`;
}

function showLogin(reason) {
  if (state.stream) state.stream.abort();
  state.stream = null;   // so that the same run is followed again after the login
  el("login").hidden = false;
  el("page").hidden = true;
  el("refused").textContent = reason;
}

async function open() {
  clearTimeout(state.retry);   // the user may press Open before the retry
  state.token = readToken();
  if (!state.token) return showLogin("");
  try { await listRuns(); } catch (error) {
    if (error.message === "denied") return showLogin("The token is unknown.");
    state.retry = setTimeout(open, 2000);   // the token may be right: the coordinator starts, or its store is not available
    return showLogin(`The coordinator is not available (${error.message}). This page retries every 2 s.`);
  }
  el("login").hidden = true;
  el("page").hidden = false;
}

el("runs").addEventListener("change", () => follow(el("runs").value));
el("login").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = el("token").value.trim();
  if (token) sessionStorage.setItem("token", token);
  open();
});
setInterval(showAge, 1000);
setInterval(() => el("page").hidden || listRuns().catch(() => undefined), 5000);
open();
