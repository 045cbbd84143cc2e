// What a judge was asked and what it replied, word for word; asked for when a reader opens it, and shown as text only.

import { get, runPath } from "./api.js";
import { make } from "./dom.js";

export function promptAndReplies(run, result) {
  const place = make("div", [make("p", "Loading…", "quiet")]);
  const details = make("details", [make("summary", `Prompt and replies of ${result.judge}`), place], "replies");
  let asked = false;
  details.addEventListener("toggle", async () => {
    if (!details.open || asked) return;
    asked = true;
    try {
      place.replaceChildren(...shown(await get(`${runPath(run)}/replies/${result.prompt}`)));
    } catch (error) {
      place.replaceChildren(make("p", error.message, error.status === 404 ? "quiet" : "bad"));
      asked = error.status === 404;   // another failure may end: the next opening asks again
    }
  });
  return details;
}

function shown(kept) {
  return [...(kept.complete ? [] : [make("p", "Long texts are cut here: zelda trace --prompts prints them whole.", "quiet")]),
    ...kept.replies.map((text, at) => words(kept.replies.length > 1 ? `Reply ${at + 1}` : "Reply", text)),
    ...kept.messages.map((one) => words(`Prompt, ${one.role || "no role"}`, one.text)), words("Request", kept.settings)];
}

// A long text scrolls within its own frame, which a keyboard can reach.
const words = (title, text) => make("div", [make("h4", title),
  make("pre", text || "(empty)", "raw", { tabindex: "0", role: "region", "aria-label": title })]);
