// The live page of one run. It shows what the stream says and how old that is; it never guesses a figure.
"use strict";

const el = (id) => document.getElementById(id);
const STALE_S = 10, GONE_S = 30, SHOWN_SCORES = 40;
const state = { token: "", run: "", progress: null, epochs: new Map(), heard: 0, ahead: 0, stream: null, again: 0 };

// The token comes in the part of the address that browsers never send, and is kept for this tab only.
function readToken() {
  const match = /^#token=(.+)$/.exec(location.hash);
  if (match) {
    sessionStorage.setItem("token", match[1]);
    history.replaceState(null, "", location.pathname + location.search);
  }
  return sessionStorage.getItem("token") || "";
}

async function ask(path, signal) {
  const answer = await fetch(path, { headers: { Authorization: `Bearer ${state.token}` }, signal });
  const time = Date.parse(answer.headers.get("date"));
  if (time) state.ahead = time - Date.now();   // how old news are is counted on the server's clock, which wrote them
  if (answer.status === 401) throw new Error("denied");
  if (!answer.ok) throw Object.assign(new Error(`the server answered ${answer.status}`), { status: answer.status });
  return answer;
}

function make(tag, text, kind) {
  const made = document.createElement(tag);
  if (text !== undefined) made.textContent = text;   // text only: nothing from a game or a judge becomes markup
  if (kind) made.className = kind;
  return made;
}

const number = (value, digits = 2) => (value === null || value === undefined ? "–" : value.toFixed(digits));

async function listRuns() {
  const runs = (await (await ask("/runs?limit=200")).json()).items;
  const wanted = state.run || new URLSearchParams(location.search).get("run");
  const older = !wanted || runs.some((run) => run.run === wanted) ? undefined : await lookUp(wanted);
  if (older) runs.push(older);
  el("runs").replaceChildren(...runs.map((run) => {
    const option = make("option", `${run.run} (${run.state})`);
    option.value = run.run;
    return option;
  }));
  const shown = state.run || wanted;   // somebody may have chosen another one meanwhile
  const found = runs.find((run) => run.run === shown) || runs[0];
  if (found) { el("runs").value = found.run; if (found.run !== state.run || !state.stream) follow(found.run); }
}

// A run that is not among the newest; nothing if there is none of this name.
async function lookUp(run) {
  try {
    return (await (await ask(`/runs/${encodeURIComponent(run)}`)).json()).record;
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
      const answer = await ask(`/runs/${run}/events`, stream.signal);
      el("votes").replaceChildren();   // every stream tells the newest scores first, also those that were shown
      await read(answer);
    } catch (error) {
      if (error.message === "denied") return closed("The token is not known any more.");
    }
    await new Promise((again) => setTimeout(again, 1000));
  }
}

// Nothing of the run before may stand under the name of this one, which may not have such figures for hours.
function clear(run) {
  Object.assign(state, { run, progress: null, epochs: new Map(), heard: 0 });
  for (const id of ["votes", "figures", "doing"]) el(id).replaceChildren();
  Object.assign(el("state"), { textContent: "–", className: "badge", title: "" });
  el("bar").style.width = "0";
  showEpochs();
}

async function read(answer) {
  const reader = answer.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const match = /^event: (\w+)\ndata: (.*)$/s.exec(block);
      if (match) hear(match[1], JSON.parse(match[2]));
    }
  }
}

function hear(kind, news) {
  if (kind === "progress") { state.progress = news; state.heard = Date.parse(news.updated); showProgress(news); }
  if (kind === "run") showState(news);
  if (kind === "epoch") { state.epochs.set(news.epoch, news); showEpochs(); }
  if (kind === "score") showScore(news);
}

function showState(record) {
  const kinds = { running: "good", created: "wait", stopping: "wait", stopped: "wait", finished: "good", failed: "bad" };
  el("state").textContent = record.state;
  el("state").className = `badge ${kinds[record.state]}`;
  el("state").title = record.reason || "";
}

function showProgress(p) {
  el("doing").textContent = p.doing;
  el("bar").style.width = `${Math.min(100, 100 * p.steps / p.epoch_steps)}%`;
  const eta = p.eta_s === null ? "–" : `${Math.floor(p.eta_s / 60)} min ${Math.floor(p.eta_s % 60)} s`;
  const figures = [["epoch", `${p.epoch + 1} of ${p.epochs_planned ?? "∞"}`], ["steps", `${p.steps} / ${p.epoch_steps}`],
    ["steps per second", number(p.steps_per_s, 0)], ["segments recorded", p.segments_recorded],
    ["judged", p.segments_judged], ["left", p.segments_left], ["votes", p.votes], ["agreement", number(p.agreement)],
    ["reward-model accuracy", number(p.reward_model_accuracy)], ["time left", eta]];
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
    const kind = row ? (row.segments_waiting ? "judging" : "done") : p && p.epoch === epoch ? "now" : "";
    return make("span", planned <= 40 ? epoch : undefined, kind);
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
  while (el("votes").children.length > SHOWN_SCORES) el("votes").lastChild.remove();
}

function showAge() {
  const seconds = state.heard ? Math.max(0, Math.round((Date.now() + state.ahead - state.heard) / 1000)) : null;
  const ended = ["finished", "failed", "stopped"].includes(el("state").textContent);
  el("age").textContent = seconds === null ? "no news yet" : `last update ${seconds} s ago`;
  el("age").className = `badge ${seconds === null || ended ? "" : seconds > GONE_S ? "bad" : seconds > STALE_S ? "wait" : "good"}`;
}

function closed(why) {
  if (state.stream) state.stream.abort();
  state.stream = null;   // else whoever comes back to the same run would be taken for one who still follows it
  el("door").hidden = false;
  el("page").hidden = true;
  el("refused").textContent = why;
}

async function open() {
  clearTimeout(state.again);   // whoever presses Open meanwhile asks now, not twice
  state.token = readToken();
  if (!state.token) return closed("");
  try { await listRuns(); } catch (error) {
    if (error.message === "denied") return closed("The token is not known.");
    state.again = setTimeout(open, 2000);   // nothing is wrong with the token: the coordinator starts, or its store is away
    return closed(`No answer yet (${error.message}); this page asks again.`);
  }
  el("door").hidden = true;
  el("page").hidden = false;
}

el("runs").addEventListener("change", () => follow(el("runs").value));
el("door").addEventListener("submit", (event) => {
  event.preventDefault();
  const token = el("token").value.trim();
  if (token) sessionStorage.setItem("token", token);
  open();
});
setInterval(showAge, 1000);
setInterval(() => el("page").hidden || listRuns().catch(() => undefined), 5000);
open();
