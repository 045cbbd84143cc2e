// Requests to the REST interface. The token comes in the fragment of the address, which browsers do not send.

const KEY = "zelda-token";
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
  const { body, ...rest } = options;
  const headers = { Authorization: `Bearer ${session.token}`, ...(body ? { "Content-Type": "application/json" } : {}) };
  const response = await fetch(path, { ...rest, headers, body: body && JSON.stringify(body) });
  const time = Date.parse(response.headers.get("date"));
  if (time) session.clockSkew = time - Date.now();   // ages count on the clock of the server
  if (response.ok) return response;
  const problem = await response.json().catch(() => ({}));
  throw new Refused(response.status, problem.detail || `The server answered ${response.status}.`);
}

export const get = async (path, options) => (await request(path, options)).json();
export const post = async (path, body = {}) => (await request(path, { method: "POST", body })).json();
export const put = async (path, body) => (await request(path, { method: "PUT", body })).json();
export const runPath = (run) => `runs/${encodeURIComponent(run)}`;

// A picture or video as an address for this page: markup cannot send the token. Revoke it when it is no longer shown.
export async function blobAddress(path, options) {
  return URL.createObjectURL(await (await request(path, options)).blob());
}
