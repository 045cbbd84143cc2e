// Follows one run: server-sent events over fetch, which can send the token. Reconnects every second.

import { request, runPath } from "./api.js";
import { changed, clear, state, take } from "./state.js";

let current = null;

export async function follow(run, onDenied) {
  stop();
  const stream = current = new AbortController();
  clear(run);
  while (!stream.signal.aborted) {
    try {
      const response = await request(`${runPath(run)}/events`, { signal: stream.signal });
      connected(true);
      await read(response, stream.signal);
    } catch (error) {
      if (stream.signal.aborted) return;
      if (error.status === 401) return onDenied("The token is no longer valid.");
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
  if (state.connected && !now) state.lostAt = Date.now();
  state.connected = now;
  changed();
}

async function read(response, signal) {
  const reader = response.body.pipeThrough(new TextDecoderStream()).getReader();
  let rest = "";
  for (;;) {
    const { value, done } = await reader.read();
    if (done || signal.aborted) return;
    const blocks = (rest + value).split("\n\n");
    rest = blocks.pop();
    for (const block of blocks) {
      const match = /^event: (\w+)\ndata: (.*)$/s.exec(block);
      if (match) take(match[1], JSON.parse(match[2]));
    }
  }
}
