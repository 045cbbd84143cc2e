// A configuration as named fields; for the page and for the report.

import { known } from "./dom.js";

// {shaping: {mode: "gain"}} as [["shaping.mode", "gain"]].
export function flat(value, prefix = "") {
  if (value === null || typeof value !== "object" || Array.isArray(value)) return [[prefix, value]];
  return Object.entries(value).flatMap(([name, one]) => flat(one, prefix ? `${prefix}.${name}` : name));
}

export const fieldText = (value) => (known(value) ? String(value) : "none");
