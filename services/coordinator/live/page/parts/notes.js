// The note and the tags of a run: text for viewers, a form for operators.

import { get, put, runPath, session } from "./api.js";
import { make, section } from "./dom.js";
import { listRuns } from "./runs.js";

export async function showNotes(place, run) {
  place.dataset.run = run;   // an answer about another run may come later
  place.replaceChildren();
  try {
    const notes = await get(`${runPath(run)}/notes`);
    if (place.dataset.run !== run) return;
    place.replaceChildren(section("Note and tags", session.role === "operator" ? [form(run, notes)] : [...text(notes)]));
  } catch (error) {
    if (place.dataset.run !== run) return;
    place.replaceChildren(section("Note and tags", [make("p", error.message, "bad")]));
  }
}

function text(notes) {
  const tags = notes.tags.map((tag) => make("span", tag, "chip"));
  const shown = [tags.length ? make("p", tags) : null, notes.note ? make("p", notes.note, "note") : null].filter(Boolean);
  return shown.length ? shown : [make("p", "This run has no note and no tags.", "quiet")];
}

function form(run, notes) {
  const tags = make("input", undefined, "", { type: "text", name: "tags", value: notes.tags.join(" "), autocomplete: "off" });
  const note = make("textarea", notes.note, "", { name: "note", rows: "3", maxlength: "4000" });
  const message = make("p", "", "", { role: "status" }), button = make("button", "Save");
  const element = make("form", [make("label", [make("span", "tags, separated by blanks"), tags], "field"),
    make("label", [make("span", "note"), note], "field"), make("div", [button, message], "row")], "notes");
  element.addEventListener("submit", async (event) => {
    event.preventDefault();
    button.disabled = true;
    try {
      const saved = await put(`${runPath(run)}/notes`, { note: note.value, tags: tags.value.split(/[\s,]+/).filter(Boolean) });
      tags.value = saved.tags.join(" ");
      message.className = "good";
      message.textContent = "Saved.";
      await listRuns();
    } catch (error) {
      message.className = "bad";
      message.textContent = error.message;
    }
    button.disabled = false;
  });
  return element;
}
