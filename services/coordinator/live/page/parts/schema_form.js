// A form from the configuration's JSON schema. Only fields that differ from their default are sent.

import { known, make } from "./dom.js";

const TYPES = { integer: "number", number: "number", boolean: "checkbox", string: "text" };

// One labelled field for each property; objects become groups. `path` is the address of a field, e.g. "shaping.mode".
export function fields(schema, schemas, prefix = "") {
  return Object.entries(schema.properties).map(([name, field]) => {
    const target = field.$ref ? schemas[field.$ref.split("/").pop()] : null;
    if (target && target.properties) {
      return make("fieldset", [make("legend", name), ...fields(target, schemas, `${prefix}${name}.`)]);
    }
    return labelled(`${prefix}${name}`, name, field);
  });
}

function labelled(path, name, field) {
  const input = control(field);
  input.name = path;
  input.dataset.standard = JSON.stringify(field.default ?? null);
  const hint = field.description ? make("span", field.description, "quiet") : null;
  return make("label", [make("span", name.replaceAll("_", " ")), input, hint], "field");
}

function control(field) {
  const kinds = field.anyOf ? field.anyOf.filter((one) => one.type !== "null") : [field];
  if (kinds.some((one) => one.enum)) {
    const list = make("select", kinds[0].enum.map((value) => make("option", value, "", { value })));
    list.value = String(field.default);
    return list;
  }
  const [kind] = kinds, input = make("input", undefined, "", { type: TYPES[kind.type] || "text" });
  if (kind.type === "object") return mapping(input, field.default);
  if (kind.type === "boolean") input.checked = field.default === true;
  else if (known(field.default)) input.value = String(field.default);
  if (kind.type === "number") input.step = "any";
  for (const [name, limit] of [["min", kind.minimum], ["max", kind.maximum]]) if (known(limit)) input.setAttribute(name, limit);
  return input;
}

// A field whose names the user chooses, such as `starts`: JSON text, empty for none.
function mapping(input, standard) {
  input.dataset.json = "";
  input.placeholder = '{"name": value}';
  write(input, standard);
  input.addEventListener("input", () => input.setCustomValidity(isMapping(input.value) ? "" : 'write names and values as {"name": value}'));
  return input;
}

function isMapping(text) {
  try {
    const found = JSON.parse(text || "{}");
    return typeof found === "object" && found !== null && !Array.isArray(found);
  } catch {
    return false;
  }
}

export function setValues(form, values, prefix = "") {
  for (const [name, value] of Object.entries(values)) {
    const field = form.elements[`${prefix}${name}`];
    if (value !== null && typeof value === "object" && !(field && "json" in field.dataset)) setValues(form, value, `${prefix}${name}.`);
    else write(field, value);
  }
}

export function reset(form) {
  for (const input of inputs(form)) write(input, JSON.parse(input.dataset.standard));
}

// {"shaping": {"mode": "none"}}: what differs from the defaults.
export function changes(form) {
  const found = {};
  for (const input of inputs(form)) {
    const value = read(input);
    if (JSON.stringify(value) === input.dataset.standard) continue;
    const path = input.name.split("."), last = path.pop();
    path.reduce((at, name) => (at[name] ??= {}), found)[last] = value;
  }
  return found;
}

export const valueOf = (form, path) => read(form.elements[path]);
const inputs = (form) => [...form.elements].filter((one) => "standard" in one.dataset);

function read(input) {
  if (input.type === "checkbox") return input.checked;
  if ("json" in input.dataset) return isMapping(input.value) ? JSON.parse(input.value || "{}") : input.value;
  if (input.value === "") return null;
  return input.type === "number" ? Number(input.value) : input.value;
}

function write(input, value) {
  if (!input) return;
  if (input.type === "checkbox") input.checked = value === true;
  else if ("json" in input.dataset) {
    input.value = Object.keys(value ?? {}).length ? JSON.stringify(value) : "";
    input.setCustomValidity("");
  }
  else input.value = known(value) ? String(value) : "";
}
