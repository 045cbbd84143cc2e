// Elements and figures. Text is always set as text: a judge's reason or the name of a run must not become markup.

export const byId = (id) => document.getElementById(id);

// make("p", "text", "class") or make("p", [child, child]); attributes as the last argument.
export function make(tag, content, className, attributes = {}) {
  const element = document.createElement(tag);
  if (Array.isArray(content)) element.append(...content.filter((one) => one !== null && one !== undefined));
  else if (content !== undefined && content !== null) element.textContent = content;
  if (className) element.className = className;
  for (const [name, value] of Object.entries(attributes)) element.setAttribute(name, value);
  return element;
}

export const known = (value) => value !== null && value !== undefined;
export const number = (value, digits = 2) => (known(value) ? value.toFixed(digits) : "–");
export const count = (value) => (known(value) ? Math.round(value).toLocaleString("en") : "–");
export const counted = (value, word) => `${count(value)} ${word}${value === 1 ? "" : "s"}`;
export const sentence = (text) => (/[.!?]$/.test(text.trim()) ? text.trim() : `${text.trim()}.`);
export const percent = (value) => (known(value) ? `${(100 * value).toFixed(0)} %` : "–");

export function duration(seconds) {
  if (!known(seconds)) return "–";
  if (seconds < 60) return `${Math.round(seconds)} s`;
  if (seconds < 3600) return `${Math.floor(seconds / 60)} min ${Math.floor(seconds % 60)} s`;
  return `${Math.floor(seconds / 3600)} h ${Math.floor(seconds % 3600 / 60)} min`;
}

// A table whose rows become cards on a narrow screen: each cell carries the name of its column.
export function table(columns, rows, caption) {
  const head = make("tr", columns.map((column) => make("th", column, "", { scope: "col" })));
  const body = rows.map((cells) => make("tr", cells.map((cell, at) => {
    const content = cell instanceof Node ? [cell] : known(cell) ? String(cell) : "–";
    return make("td", content, "", { "data-label": columns[at] });
  })));
  const element = make("table", [make("caption", caption, "quiet"), make("thead", [head]), make("tbody", body)]);
  return make("div", [element], "scroll", { tabindex: "0", role: "region", "aria-label": caption });
}

export function section(title, children, hint) {
  return make("section", [make("h2", title), hint ? make("p", hint, "quiet") : null, ...children]);
}

export const code = (text) => make("code", text);

const rendered = new WeakMap();

// Replaces the children only if `key` has changed: an equal part keeps its focus, its scroll position and its hover.
// In a changed part, the focus goes to the new element with the same id.
export function renderIf(element, key, build) {
  const text = JSON.stringify(key);
  if (rendered.get(element) === text) return;
  rendered.set(element, text);
  const held = element.contains(document.activeElement) && document.activeElement.id;
  element.replaceChildren(...build());
  if (held && byId(held)) byId(held).focus({ preventScroll: true });
}
