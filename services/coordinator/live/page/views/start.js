// Starts a run: presets, the fields of the configuration, and how long it will take at the speed measured last.

import { get, post, session } from "../parts/api.js";
import { count, duration, make, renderIf, section } from "../parts/dom.js";
import { leave, listRuns } from "../parts/runs.js";
import { changes, fields, reset, setValues, valueOf } from "../parts/schema_form.js";
import { rows, state } from "../parts/state.js";

const MAIN = ["game", "world", "seed", "epochs", "epoch_steps", "env_runners", "envs_per_runner"];
const PRESETS = {
  "garden, some minutes": { world: "garden", epochs: 3, epoch_steps: 20_000, episode_length: 1_000, batch_size: 2_000,
    env_runners: 0, envs_per_runner: 8, sampling: { budget: 100 } },
  "vale, for hours": { world: "vale", epochs: 10 },
  "all defaults": {},
};
let part = null, schemas = null, problem = "", refresh = null;

function build() {
  part = make("div");
  if (!schemas) read();
  return [part];
}

async function read() {
  problem = "";
  try {
    schemas = (await get("openapi.json")).components.schemas;
  } catch (error) {
    problem = error.message;
  }
  update();
}

function update() {
  if (refresh) refresh();
  renderIf(part, [session.role, schemas !== null, problem], () => {
    if (session.role !== "operator") return [section("Start a run", [make("p", "This token can only read: an operator starts runs.")])];
    if (schemas) return [section("Start a run", [form()])];
    return [problem ? section("The form cannot be shown", [make("p", problem, "bad")]) : section("Loading…", [])];
  });
}

function form() {
  const element = make("form", [], "start", { "aria-label": "configuration" }), all = fields(schemas.RunConfig, schemas);
  const isMain = (one) => one.matches("label") && MAIN.includes(one.querySelector("[name]").name);
  const name = make("input", undefined, "", { name: "run", type: "text", placeholder: "chosen by the system", autocomplete: "off" });
  const estimate = make("p", "", "sentence", { role: "status" }), refused = make("p", "", "bad", { role: "alert" });
  const presets = Object.entries(PRESETS).map(([text, values]) => {
    const button = make("button", text, "", { type: "button" });
    button.addEventListener("click", () => { reset(element); setValues(element, values); refresh(); });
    return button;
  });
  element.append(make("div", [make("span", "Presets", "quiet"), ...presets], "row"),
    make("div", [make("label", [make("span", "name"), name], "field"), ...all.filter(isMain)], "grid"),
    make("details", [make("summary", "All other fields"), make("div", all.filter((one) => !isMain(one)), "grid")]),
    estimate, make("div", [make("button", "Start the run", "primary")], "row"), refused);
  refresh = () => { estimate.textContent = estimated(element); };
  element.addEventListener("input", refresh);
  element.addEventListener("submit", (event) => { event.preventDefault(); start(element, name.value.trim(), refused); });
  setValues(element, PRESETS["garden, some minutes"]);
  refresh();
  return element;
}

// Steps over the speed that the shown run has measured. The speed depends on the world and on the number of runners.
function estimated(element) {
  const epochs = valueOf(element, "epochs") ?? (valueOf(element, "run_hours") === null ? 3 : null);
  const steps = epochs === null ? null : epochs * valueOf(element, "epoch_steps");
  const speed = rows().at(-1)?.steps_per_s;
  if (steps === null) return `The run ends after ${valueOf(element, "run_hours")} h.`;
  if (!speed) return `${count(steps)} steps. The first finished epoch of any run shows how long they take.`;
  return `${count(steps)} steps: about ${duration(steps / speed)} of training at the ${count(speed)} steps per second of ${state.run}; ` +
    "evaluation and judging take additional time.";
}

// The key of a request stays the same until its answer has come: a repeated one starts no second run.
const sent = { text: "", key: "" };

function keyOf(text) {
  const bytes = crypto.getRandomValues(new Uint8Array(16));
  if (sent.text !== text) Object.assign(sent, { text, key: Array.from(bytes, (byte) => byte.toString(16).padStart(2, "0")).join("") });
  return sent.key;
}

async function start(element, run, refused) {
  const button = element.querySelector(".primary"), body = { ...(run ? { run } : {}), config: changes(element) };
  refused.textContent = "";
  button.disabled = true;   // a second click must not start a second run
  try {
    const record = await post("runs", body, { "Idempotency-Key": keyOf(JSON.stringify(body)) });
    sent.text = "";
    history.replaceState(null, "", `?run=${encodeURIComponent(record.run)}#/overview`);
    leave();
    await listRuns();
    dispatchEvent(new HashChangeEvent("hashchange"));
  } catch (error) {
    refused.textContent = error.message;
  }
  button.disabled = false;
}

export const startRun = { id: "start", title: "Start a run", build, update };
