// The events that no service could handle, each with its reason; operators replay them.

import { get, post, session } from "./api.js";
import { code, known, make, renderIf, section, table } from "./dom.js";

const EVERY_MS = 30_000;

// Fills `place` and keeps it new while it is on the page and the page is visible.
export function watchDeadLetters(place) {
  const load = async () => {
    try {
      const letters = await get("dead-letters");
      renderIf(place, [session.role, letters], () => show(letters, load));
    } catch (error) {
      if (!error.status) return;   // a banner says that the server does not answer
      renderIf(place, error.message, () => [section("Dead letters", [make("p", error.message, "bad")])]);
    }
  };
  const timer = setInterval(() => {
    if (!place.isConnected) return clearInterval(timer);
    if (!document.hidden) load();
  }, EVERY_MS);
  load();
}

function show(letters, reload) {
  if (!letters.length) return [];
  const operator = session.role === "operator", problem = make("p", "", "bad", { role: "alert" });
  const columns = ["number", "time", "run", "event", "consumer", "deliveries", "reason", ...(operator ? ["action"] : [])];
  const lines = letters.map((one) => [one.number, new Date(one.time).toLocaleString(), one.run, one.event, one.consumer,
    one.deliveries || null, make("span", one.reason, "why"), ...(operator ? [action(one, problem, reload)] : [])]);
  return [section("Dead letters", [table(columns, lines, "Events that no service could handle, oldest first"), problem],
    "Remove the reason, then replay: work that is done is not repeated.")];
}

function action(one, problem, reload) {
  if (!one.replayable) return code(`zelda dlq ${known(one.event) ? "replay" : "drop"} ${one.number}`);
  const button = make("button", "Replay", "", { type: "button", "aria-label": `Replay dead letter ${one.number}` });
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      await post(`dead-letters/${one.number}/replay`);
      await reload();
    } catch (error) {
      problem.textContent = error.message;
      button.disabled = false;
    }
  });
  return button;
}
