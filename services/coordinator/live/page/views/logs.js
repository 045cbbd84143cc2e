// The newest log lines of the local system's processes, for operators: those about this run, and those about no run.

import { get, runPath } from "../parts/api.js";
import { make, renderIf, section } from "../parts/dom.js";
import { noRun, state } from "../parts/state.js";

const LINES = 200, PROCESSES = ["trainer"];
const parts = {}, shown = { run: "", process: "trainer", found: null, error: "" };
let reads = 0;   // an answer to an earlier question may come later

function build() {
  Object.assign(parts, { choice: make("div", [], "row"), lines: make("div") });
  shown.run = "";   // a second look reads the log again
  return [make("section", [make("h2", "Logs"), make("p", "The newest lines, without those about other runs.", "quiet"), parts.choice]), parts.lines];
}

function update() {
  if (shown.run !== state.run && state.run) load(shown.process);
  renderIf(parts.choice, [shown.process, shown.found && shown.found.processes, state.run], choice);
  renderIf(parts.lines, [shown.run, shown.process, shown.found, shown.error], lines);
}

async function load(process) {
  const run = state.run, read = reads += 1;
  Object.assign(shown, { run, process, found: null, error: "" });
  const found = await get(`${runPath(run)}/logs?process=${encodeURIComponent(process)}&lines=${LINES}`)
    .then((answer) => ({ found: answer }), (error) => ({ error: error.message }));
  if (read !== reads) return;
  Object.assign(shown, found);
  update();
}

function choice() {
  if (!state.run) return [make("p", noRun(), "quiet")];
  const names = shown.found ? shown.found.processes : PROCESSES;
  const list = make("select", names.map((name) => make("option", name, "", { value: name })), "", { id: "process" });
  list.value = shown.process;
  list.addEventListener("change", () => { load(list.value); update(); });
  const again = make("button", "Read again", "", { type: "button", id: "again" });
  again.addEventListener("click", () => { load(shown.process); update(); });
  return [make("label", ["Process ", list]), again];
}

function lines() {
  if (shown.error) return [section("No log can be shown", [make("p", shown.error)])];
  if (!shown.found) return shown.run ? [section("Loading…", [])] : [];
  if (!shown.found.lines.length) return [section("No line", [make("p", `The log of ${shown.process} has no line about this run.`, "quiet")])];
  const text = make("pre", shown.found.lines.map(readable).join("\n"), "raw log", { tabindex: "0", role: "region", "aria-label": `log of ${shown.process}` });
  setTimeout(() => { text.scrollTop = text.scrollHeight; });   // the newest line is the last
  return [make("section", [text])];
}

// A line of the services is JSON: its time, level and event come first, then its fields. Other lines stay as they are.
function readable(line) {
  let fields;
  try {
    fields = JSON.parse(line);
  } catch {
    return line;
  }
  if (fields === null || typeof fields !== "object" || typeof fields.event !== "string") return line;
  const { timestamp = "", level = "", event, service, run, exception = "", ...rest } = fields;
  const others = Object.entries(rest).map(([name, value]) => `${name}=${typeof value === "string" ? value : JSON.stringify(value)}`);
  return [`${String(timestamp).slice(0, 19).replace("T", " ")} ${String(level).padEnd(7)} ${event}`, ...others].join("  ") + (exception && `\n${exception}`);
}

export const logs = { id: "logs", title: "Logs", operators: true, build, update };
