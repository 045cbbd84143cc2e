// Renders openapi.json: routes, parameters, an example to paste, and the fields of a run's configuration.
"use strict";

function make(tag, text, className) {
  const element = document.createElement(tag);
  if (text !== undefined) element.textContent = text;
  if (className) element.className = className;
  return element;
}

const schemaName = (schema) => (schema && schema.$ref ? schema.$ref.split("/").pop() : undefined);

function typeOf(schema) {
  if (!schema) return "";
  if (schema.$ref) return schemaName(schema);
  if (schema.anyOf) return schema.anyOf.map(typeOf).join(" or ");
  if (schema.enum) return schema.enum.map((value) => JSON.stringify(value)).join(" | ");
  if (schema.type === "array") return `list of ${typeOf(schema.items)}`;
  const bounds = [["minimum", "≥"], ["exclusiveMinimum", ">"], ["maximum", "≤"], ["pattern", "matches"]];
  return [schema.type, ...bounds.filter(([key]) => key in schema).map(([key, sign]) => `${sign} ${schema[key]}`)].join(" ");
}

function table(rows, head) {
  const box = make("div", undefined, "scroll"), element = make("table"), first = make("tr");
  for (const cell of head) first.append(make("th", cell));
  element.append(first);
  for (const row of rows) {
    const line = make("tr");
    for (const cell of row) line.append(make("td", cell));
    element.append(line);
  }
  box.append(element);
  return box;
}

function fields(schema) {
  return Object.entries(schema.properties || {}).map(([name, field]) =>
    [name, typeOf(field), "default" in field ? JSON.stringify(field.default) : "", field.description || ""]);
}

function route(path, method, operation, schemas) {
  const section = make("section");
  section.append(make("h2", `${method.toUpperCase()} ${path}`), make("p", operation.description || operation.summary));
  const parameters = (operation.parameters || []).map((one) =>
    [one.name, one.in, typeOf(one.schema), one.description || one.schema.description || ""]);
  if (parameters.length) section.append(table(parameters, ["parameter", "in", "type", "meaning"]));
  const body = operation.requestBody && schemaName(operation.requestBody.content["application/json"].schema);
  const example = body && (schemas[body].examples || [])[0];
  const data = example ? ` -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify(example)}'` : "";
  const post = method === "get" ? "" : ` -X ${method.toUpperCase()}`;
  const pre = make("pre");
  pre.append(make("code", `curl${post} -H "Authorization: Bearer $TOKEN" ${location.origin}${path}${data}`));
  section.append(pre);
  const responses = Object.entries(operation.responses).map(([status, one]) => [status, one.description]);
  section.append(table(responses, ["status", "meaning"]));
  return section;
}

async function show() {
  const document_ = await (await fetch("openapi.json")).json(), schemas = document_.components.schemas;
  for (const [path, item] of Object.entries(document_.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      document.getElementById("routes").append(route(path, method, operation, schemas));
    }
  }
  for (const name of ["RunConfig", "ShapingConfig", "SamplingConfig"]) {
    const section = make("section");
    section.append(make("h2", name), make("p", schemas[name].description));
    section.append(table(fields(schemas[name]), ["field", "type", "default", "meaning"]));
    document.getElementById("routes").append(section);
  }
}

show();
