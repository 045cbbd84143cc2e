// Follows one run: server-sent events over fetch, which can send the token. Reconnects every second.

import { request, runPath } from "./api.js";
import { changed, clear, state, take } from "./state.js";

const SILENT_MS = 30_000;   // the server sends a comment every 10 s, so a silent stream is broken
let current = null, heard = 0, denied = () => undefined, gone = () => undefined;

// What happens when the token is no longer valid, and when the followed run was deleted.
export function whenEnded(onDenied, onGone) {
  [denied, gone] = [onDenied, onGone];
}

export async function follow(run) {
  stop();
  const stream = current = new AbortController();
  clear(run);
  while (!stream.signal.aborted) {
    try {
      await readOnce(run, stream.signal);
    } catch (error) {
      if (stream.signal.aborted) return;
      if (error.status === 401) return denied();
      if (error.status === 404) return gone();
      connected(false);
    }
    await new Promise((resolve) => setTimeout(resolve, 1000));
  }
}

export function stop() {
  if (current) current.abort();
  current = null;
}

export const following = () => current !== null;

function connected(now) {
  if (state.connected && !now) state.lostAt = heard || Date.now();
  state.connected = now;
  changed();
}

// One connection, until it ends, breaks or stays silent.
async function readOnce(run, stopped) {
  const silent = new AbortController(), signal = AbortSignal.any([stopped, silent.signal]);
  let timer;
  const watch = () => { clearTimeout(timer); timer = setTimeout(() => silent.abort(), SILENT_MS); };
  watch();
  try {
    const response = await request(`${runPath(run)}/events`, { signal });
    connected(true);
    await read(response, stopped, () => { heard = Date.now(); watch(); });
  } finally {
    clearTimeout(timer);
  }
}

async function read(response, stopped, hear) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done || stopped.aborted) return;
    hear();
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const match = /^event: (\w+)\ndata: (.*)$/s.exec(block);
      if (match) take(match[1], JSON.parse(match[2]));
    }
  }
}
