// The list of runs, and which one is shown. The address holds the run, so it can be shared.

import { get, runPath } from "./api.js";
import { byId, make } from "./dom.js";
import { follow, following, stop } from "./stream.js";
import { changed, clear, state } from "./state.js";

const NEWEST = 200;
export const unknown = { run: "" };   // the run that the address names, if it does not exist

export const wantedRun = () => new URLSearchParams(location.search).get("run") || "";

export async function listRuns() {
  const runs = (await get(`runs?limit=${NEWEST}`)).items;
  const wanted = state.run || wantedRun();
  const older = !wanted || runs.some((one) => one.run === wanted) ? undefined : await findRun(wanted);
  if (older) runs.push(older);
  state.runs = runs;
  const shown = state.run || wanted;   // the user may have selected another run meanwhile
  const found = runs.find((one) => one.run === shown) || (shown ? undefined : runs[0]);
  unknown.run = shown && !found ? shown : "";
  showOptions(found ? found.run : "");
  if (found && (found.run !== state.run || !following())) select(found.run);
  if (unknown.run && state.run) leave();   // the run was deleted
  changed();
}

// Follows no run any more.
export function leave() {
  stop();
  clear("");
}

export function select(run) {
  unknown.run = "";
  history.replaceState(null, "", `?run=${encodeURIComponent(run)}${location.hash}`);
  byId("runs").value = run;
  follow(run);
}

// The record of a run that is not among the newest, or undefined if it does not exist.
async function findRun(run) {
  try {
    const found = await get(runPath(run));
    return { ...found.record, tags: (await get(`${runPath(run)}/notes`)).tags };
  } catch (error) {
    if (error.status === 404 || error.status === 422) return undefined;
    throw error;
  }
}

function showOptions(shown) {
  const options = state.runs.map((run) => {
    const option = make("option", [`${run.run} (${run.state})`, ...run.tags].join(" · "));
    option.value = run.run;
    return option;
  });
  if (!shown) options.unshift(make("option", state.runs.length ? "select a run" : "no run yet", "", { value: "" }));
  byId("runs").replaceChildren(...options);
  byId("runs").value = shown;
}
