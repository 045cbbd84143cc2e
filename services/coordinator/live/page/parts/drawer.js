// One segment in a dialog: key frames, video, what happened, its rewards, every vote with its reasons, raw replies.

import { get, request } from "./api.js";
import { chart } from "./chart.js";
import { counted, known, make, number, table } from "./dom.js";
import { judgeVotes } from "./judge_votes.js";
import { keyFrame, segmentPath } from "./pictures.js";
import { promptAndReplies } from "./replies.js";

const TRIES = 30;

export async function openSegment(run, one) {
  const dialog = make("dialog", [], "drawer", { "aria-label": `Segment ${one.segment}` });
  const close = make("button", "Close", "", { type: "button" }), closed = new AbortController();
  close.addEventListener("click", () => dialog.close());
  dialog.addEventListener("close", () => { closed.abort(); dialog.remove(); });
  const body = make("div", [make("p", "Loading…", "quiet")]);
  dialog.append(make("header", [make("h2", one.segment), close]), body);
  document.body.append(dialog);
  dialog.showModal();
  try {
    body.replaceChildren(...show(run, await get(segmentPath(run, one)), closed.signal));
  } catch (error) {
    body.replaceChildren(make("p", error.message, "bad"));
  }
}

function show(run, detail, closed) {
  const one = detail.summary;
  const facts = [`epoch ${one.epoch}`, `steps ${one.first_step} to ${one.first_step + one.steps - 1} of its episode`,
    `score ${number(one.score)}`, `reward ${number(one.reward)}`, one.milestones ? `${counted(one.milestones, "milestone")} gained` : null];
  const frames = detail.key_frames.slice(0, one.frames).map((step, at) => make("figure",
    [keyFrame(run, one, at, `step ${step}`), make("figcaption", `step ${step}`, "quiet")]));
  return [make("p", facts.filter(known).join(" · "), "quiet"), make("div", frames, "frames"), video(run, one, closed),
    make("h3", "Votes"), ...votes(run, detail.scores), make("h3", "Reward terms"), terms(detail.reward_terms),
    make("h3", "What happened"), happened(detail.timeline)];
}

function video(run, one, closed) {
  const place = make("div", [], "video"), button = make("button", "Show the video and the potential", "", { type: "button" });
  const status = make("span", "", "quiet", { role: "status" });
  button.addEventListener("click", async () => {
    button.disabled = true;
    try {
      const player = make("video", undefined, "", { controls: "", loop: "", autoplay: "" });
      player.muted = true;
      status.textContent = " The exporter makes the video…";
      player.src = await videoAddress(`${segmentPath(run, one)}/video`, closed);
      place.replaceChildren(player);
      await showPotential(place, run, one);
    } catch (error) {
      status.textContent = ` ${error.message}`;
      button.disabled = false;
    }
  });
  place.append(button, status);
  return place;
}

// Phi along the segment comes with its video, if a reward model shaped it.
async function showPotential(place, run, one) {
  const values = await get(`${segmentPath(run, one)}/potential`);
  const drawn = chart("potential Phi along the segment", [{ label: "Phi", points: values.map((value, step) => [step, value]) }], { across: "step" });
  place.append(drawn || make("p", "No reward model shaped this segment, so it has no potential.", "quiet"));
}

// The exporter replays the segment on the first request, which answers 202 until the video is there. The address is
// free again, and nothing is asked any more, when the segment is closed.
async function videoAddress(path, closed) {
  for (let tries = 0; tries < TRIES; tries += 1) {
    const response = await request(path, { signal: closed });
    if (response.status === 200) {
      const address = URL.createObjectURL(await response.blob());
      closed.addEventListener("abort", () => URL.revokeObjectURL(address));
      return address;
    }
    await new Promise((resolve) => setTimeout(resolve, 1000 * Number(response.headers.get("retry-after") || 2)));
  }
  throw new Error("The exporter made no video within a minute: check that it runs, and `zelda dlq list`.");
}

function votes(run, scores) {
  if (!scores) return [make("p", "Not judged yet.", "quiet")];
  return [...scores.judges.flatMap((one) => [judgeVotes(one, scores.gated), promptAndReplies(run, one)]), ...(scores.error ? [make("p", scores.error, "bad")] : [])];
}

function terms(values) {
  const lines = Object.entries(values).filter(([, value]) => value).sort((a, b) => Math.abs(b[1]) - Math.abs(a[1])).map(([name, value]) => [name, number(value, 3)]);
  return lines.length ? table(["term", "sum"], lines, "Sum of each reward term over the segment") : make("p", "No reward.", "quiet");
}

function happened(entries) {
  if (!entries.length) return make("p", "Nothing changed but the hero's place.", "quiet");
  return make("ol", entries.map((entry) => make("li", [make("span", `step ${entry.step}`, "quiet"), ` ${entry.what}`])), "events");
}
