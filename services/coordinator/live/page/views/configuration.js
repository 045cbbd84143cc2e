// The configuration of the run, beside that of another run; stopping, resuming and deleting for operators.

import { get, post, request, runPath, session } from "../parts/api.js";
import { fieldText, flat } from "../parts/configuration_fields.js";
import { make, renderIf, section, table } from "../parts/dom.js";
import { showNotes } from "../parts/notes.js";
import { leave, listRuns } from "../parts/runs.js";
import { noRun, state } from "../parts/state.js";

const parts = {}, compared = { run: "", record: null, problem: "" };
let noted = "", onlyDifferent = true;

function build() {
  Object.assign(parts, { actions: make("div"), notes: make("div"), fields: make("div") });
  noted = compared.problem = "";
  return Object.values(parts);
}

function update() {
  const record = state.record;
  renderIf(parts.actions, [session.role, record && [record.run, record.state]], () => (record ? actions(record) : []));
  if (record && noted !== record.run) showNotes(parts.notes, noted = record.run);
  const names = state.runs.map((run) => run.run).filter((run) => run !== state.run);
  if (compared.run === state.run) Object.assign(compared, { run: "", record: null });   // a run is not compared with itself
  renderIf(parts.fields, [state.run, record && record.config, names, compared, onlyDifferent], () => (record ? [fields(record, names)] : empty()));
}

const empty = () => (state.run ? [] : [section("Configuration", [make("p", noRun(), "quiet")])]);

function actions(record) {
  if (session.role !== "operator") return [];
  const message = make("p", "", "bad", { role: "alert" });
  const active = ["created", "running"].includes(record.state), ended = ["stopped", "failed"].includes(record.state);
  const buttons = [["stop", "Stop the run", active], ["resume", "Resume the run", ended]].map(([command, text, possible]) => {
    const button = make("button", text, "", { type: "button" });
    button.disabled = !possible;
    button.addEventListener("click", async () => {
      button.disabled = true;
      await post(`${runPath(record.run)}/${command}`).catch((error) => { message.textContent = error.message; button.disabled = false; });
    });
    return button;
  });
  const stopping = record.state === "stopping";
  return [section("Actions", [make("div", [...buttons, deletion(record, active || stopping, message)], "row"), message],
    "A stopped run keeps its checkpoint. A deleted run loses everything that it recorded and learned.")];
}

// Deleting takes two clicks: the second button names what is lost.
function deletion(record, active, message) {
  const button = make("button", "Delete the run", "", { type: "button" });
  button.disabled = active;
  button.addEventListener("click", async () => {
    if (!button.dataset.asked) {
      button.dataset.asked = "yes";
      button.className = "bad";
      button.textContent = `Really delete the run ${record.run}?`;
      return;
    }
    button.disabled = true;
    try {
      await request(runPath(record.run), { method: "DELETE" });
      history.replaceState(null, "", "?#/overview");
      leave();
      await listRuns();
      dispatchEvent(new HashChangeEvent("hashchange"));
    } catch (error) {
      message.textContent = error.message;
      button.disabled = false;
    }
  });
  return button;
}

function fields(record, names) {
  const other = compared.record, own = new Map(flat(record.config)), theirs = other ? new Map(flat(other.config)) : null;
  const list = make("select", [make("option", "no other run", "", { value: "" }),
    ...names.map((name) => make("option", name, "", { value: name }))], "", { id: "other" });
  list.value = other ? other.run : "";
  list.addEventListener("change", () => compare(list.value));
  const every = [...new Set([...own.keys(), ...(theirs ? theirs.keys() : [])])];
  const shown = every.filter((name) => !theirs || !onlyDifferent || fieldText(own.get(name)) !== fieldText(theirs.get(name)));
  const columns = ["field", record.run, ...(theirs ? [other.run] : [])];
  const lines = shown.map((name) => [name, fieldText(own.get(name)), ...(theirs ? [fieldText(theirs.get(name))] : [])]);
  const failed = compared.problem ? [make("p", compared.problem, "bad", { role: "alert" })] : [];
  return section("Configuration", [make("div", [make("label", ["Compare with ", list]), ...(theirs ? [choice()] : []), ...failed], "row"),
    lines.length ? table(columns, lines, "Fields of the configuration") : make("p", "The two configurations are equal.", "quiet")]);
}

async function compare(run) {
  Object.assign(compared, { run, problem: "" });
  const found = run ? await get(runPath(run)).catch((error) => error) : { record: null };
  if (compared.run !== run) return;   // another one was selected meanwhile
  Object.assign(compared, found.record === undefined ? { run: "", record: null, problem: found.message } : { record: found.record });
  update();
}

function choice() {
  const box = make("input", undefined, "", { type: "checkbox", id: "only-different" });
  box.checked = onlyDifferent;
  box.addEventListener("change", () => { onlyDifferent = box.checked; update(); });
  return make("label", [box, " only differences"]);
}

export const configuration = { id: "configuration", title: "Configuration", build, update };
