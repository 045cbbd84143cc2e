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

// What is too wide scrolls within its own frame, which a keyboard can reach.
function framed(element, about) {
  for (const [name, value] of [["tabindex", "0"], ["role", "region"], ["aria-label", about]]) element.setAttribute(name, value);
  return element;
}

// On a phone, the rows become cards: each cell carries the name of its column.
function table(rows, head, about) {
  const box = framed(make("div", undefined, "scroll"), about), element = make("table"), first = make("tr");
  const top = make("thead"), body = make("tbody");
  for (const cell of head) first.append(make("th", cell));
  top.append(first);
  for (const row of rows) {
    const line = make("tr");
    row.forEach((text, at) => {
      const cell = make("td", text);
      cell.dataset.label = head[at];
      line.append(cell);
    });
    body.append(line);
  }
  element.append(top, body);
  box.append(element);
  return box;
}

function fields(schema) {
  return Object.entries(schema.properties || {}).map(([name, field]) =>
    [name, typeOf(field), "default" in field ? JSON.stringify(field.default) : "", field.description || ""]);
}

const statuses = (responses) => Object.entries(responses).map(([status, one]) => [status, one.description]);

// The responses that every route has, with the same words: they stand once, above all routes.
function shared(operations) {
  const [first, ...others] = operations.map((one) => one.responses);
  return Object.fromEntries(Object.entries(first).filter(([status, one]) =>
    others.every((responses) => responses[status] && responses[status].description === one.description)));
}

function route(path, method, operation, schemas, common) {
  const section = make("section");
  section.append(make("h2", `${method.toUpperCase()} ${path}`), make("p", operation.description || operation.summary));
  const parameters = (operation.parameters || []).map((one) =>
    [one.name, one.in, typeOf(one.schema), one.description || one.schema.description || ""]);
  if (parameters.length) section.append(table(parameters, ["parameter", "in", "type", "meaning"], `parameters of ${method} ${path}`));
  const body = operation.requestBody && schemaName(operation.requestBody.content["application/json"].schema);
  const example = body && (schemas[body].examples || [])[0];
  const data = example ? ` -H 'Content-Type: application/json' \\\n  -d '${JSON.stringify(example)}'` : "";
  const post = method === "get" ? "" : ` -X ${method.toUpperCase()}`;
  const pre = framed(make("pre"), `example of ${method} ${path}`);
  pre.append(make("code", `curl${post} -H "Authorization: Bearer $TOKEN" ${location.origin}${path}${data}`));
  section.append(pre);
  const own = statuses(operation.responses).filter(([status]) => !(status in common));
  section.append(table(own, ["status", "meaning"], `statuses of ${method} ${path}`));
  return section;
}

async function show() {
  const document_ = await (await fetch("openapi.json")).json(), schemas = document_.components.schemas;
  const common = shared(Object.values(document_.paths).flatMap((item) => Object.values(item)));
  const first = make("section");
  first.append(make("h2", "Statuses of every route"), table(statuses(common), ["status", "meaning"], "statuses of every route"));
  document.getElementById("routes").append(first);
  for (const [path, item] of Object.entries(document_.paths)) {
    for (const [method, operation] of Object.entries(item)) {
      document.getElementById("routes").append(route(path, method, operation, schemas, common));
    }
  }
  const groups = Object.values(schemas.RunConfig.properties).filter((field) => field.$ref).map(schemaName);
  for (const name of ["RunConfig", ...groups]) {
    const section = make("section");
    section.append(make("h2", name), make("p", schemas[name].description));
    section.append(table(fields(schemas[name]), ["field", "type", "default", "meaning"], `fields of ${name}`));
    document.getElementById("routes").append(section);
  }
}

show();
