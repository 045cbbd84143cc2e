// Requests to the REST interface. The token comes in the fragment of the address, which browsers do not send.

const KEY = "zelda-token", BUSY_TRIES = 4;
export const session = { token: "", role: "viewer", clockSkew: 0 };

// The token is kept for this address, so that a second tab needs no login.
export function readToken() {
  const match = /^#token=(.+)$/.exec(location.hash);
  if (match) {
    localStorage.setItem(KEY, match[1]);
    history.replaceState(null, "", location.pathname + location.search);
  }
  session.token = localStorage.getItem(KEY) || "";
  return session.token;
}

export function keepToken(token) {
  localStorage.setItem(KEY, token);
  session.token = token;
}

export class Refused extends Error {
  constructor(status, detail) {
    super(detail);
    this.status = status;
  }
}

export async function request(path, options = {}) {
  const { body, headers, ...rest } = options;
  const content = body ? { "Content-Type": "application/json" } : {};
  const sent = { ...rest, headers: { Authorization: `Bearer ${session.token}`, ...content, ...headers }, body: body && JSON.stringify(body) };
  let response = await reach(path, sent);
  for (let tries = 1; response.status === 429 && tries < BUSY_TRIES; tries += 1) {   // many pictures in one look
    await new Promise((resolve) => setTimeout(resolve, 1000 * Number(response.headers.get("retry-after") || 1)));
    response = await reach(path, sent);
  }
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  throw new Refused(response.status, problem.detail || `The server answered ${response.status}.`);
}

// One answer. The status of a server that does not answer is 0; the browsers' own texts for this say less.
async function reach(path, sent) {
  const asked = Date.now();
  let response;
  try {
    response = await fetch(path, sent);
  } catch (error) {
    if (error.name === "AbortError") throw error;
    throw new Refused(0, "The server does not answer.");
  }
  const time = Date.parse(response.headers.get("date"));
  const kept = (response.headers.get("cache-control") || "").includes("max-age");   // the browser repeats its old date
  if (time && !kept) session.clockSkew = skewWithin(time, asked, Date.now());
  return response;
}

// Ages count on the clock of the server. Its date is up to 2 s old (whole seconds, renewed once a second) and was
// written between question and answer: only a skew that this rules out is moved, so a slow answer moves none.
function skewWithin(time, asked, answered) {
  return Math.min(Math.max(session.clockSkew, time - answered), time + 2000 - asked);
}

export const get = async (path, options) => (await request(path, options)).json();
export const post = async (path, body = {}, headers = {}) => (await request(path, { method: "POST", body, headers })).json();
export const put = async (path, body) => (await request(path, { method: "PUT", body })).json();
export const runPath = (run) => `runs/${encodeURIComponent(run)}`;

// A picture or video as an address for this page: markup cannot send the token. Revoke it when it is no longer shown.
export async function blobAddress(path, options) {
  return URL.createObjectURL(await (await request(path, options)).blob());
}
