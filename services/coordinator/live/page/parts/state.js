// What the page knows, and who wants to know of changes. Views read `state`; only stream.js and runs.js change it.

export const SCORES = 40;   // newest scores that stay in memory
export const state = {
  runs: [], run: "", record: null, progress: null, epochs: new Map(), scores: [], updated: 0, connected: true, lostAt: 0,
};

const listeners = new Set();
let waiting = false;

// Calls `listener` after changes, at most once a frame: a run of 300 epochs arrives as 300 updates.
export function listen(listener) {
  listeners.add(listener);
}

export function changed() {
  if (waiting) return;
  waiting = true;
  setTimeout(() => {
    waiting = false;
    for (const listener of listeners) listener();
  }, 30);
}

export function clear(run) {
  Object.assign(state, { run, record: null, progress: null, epochs: new Map(), scores: [], updated: 0 });
  changed();
}

// What a view says while no run is shown.
export const noRun = () => (state.runs.length ? "No run is selected: select one above." : "There is no run yet.");

export const rows = () => [...state.epochs.values()].sort((a, b) => a.epoch - b.epoch);

export function take(kind, update) {
  if (kind === "run") state.record = update;
  if (kind === "progress") { state.progress = update; state.updated = Date.parse(update.updated); }
  if (kind === "epoch") state.epochs.set(update.epoch, update);
  if (kind === "score") {
    const others = state.scores.filter((one) => one.segment !== update.segment);
    state.scores = [update, ...others].slice(0, SCORES);
  }
  changed();
}
