// Elements, tables, requests. Text is always text: nothing here makes markup of what the server says.
"use strict";

export const token = document.querySelector("meta[name=trifecta-token]").content;

/** An element with attributes (functions become listeners) and children. */
export function h(tag, attributes = {}, ...children) {
  const made = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (typeof value === "function") made.addEventListener(name, value);
    else made.setAttribute(name, value === true ? "" : value);
  }
  made.append(...children.flat(Infinity).filter((one) => one !== null && one !== undefined && one !== ""));
  return made;
}

export class Refused extends Error {}

async function answered(response) {
  const type = response.headers.get("content-type") || "";
  const body = type.startsWith("application/json") ? await response.json() : { error: (await response.text()).trim() };
  if (!response.ok) throw new Refused(body.error || `the server answers ${response.status}`);
  return body;
}

export async function get(path, fields = {}, signal = undefined) {
  const query = new URLSearchParams(fields).toString();
  return answered(await fetch(query ? `${path}?${query}` : path, { signal }));
}

export async function post(path, body) {
  const headers = { "content-type": "application/json", "x-trifecta-token": token };
  return answered(await fetch(path, { method: "POST", headers, body: JSON.stringify(body) }));
}

/** Tell a screen reader. */
export function say(text) { document.getElementById("said").textContent = text; }

const LONG = 34;

/** A table of the server; cells of the first column head their rows. */
export function table(data) {
  const numeric = new Set(data.numeric || []);
  const kind = (text, i) => (numeric.has(i) ? "n" : text.length > LONG ? "long" : null);
  const head = h("tr", {}, data.columns.map((one, i) => h("th", { scope: "col", class: numeric.has(i) ? "n" : null }, one)));
  const body = data.rows.map((row) => h("tr", {}, row.map((text, i) => i
    ? h("td", { class: kind(text, i) }, text)
    : h("th", { scope: "row", class: kind(text, i) }, text))));
  const made = h("div", { class: "answer" },
    h("div", { class: "scroll", tabindex: "0", role: "region", "aria-label": data.caption },
      h("table", {}, h("caption", {}, data.caption), h("thead", {}, head), h("tbody", {}, body))),
    (data.notes || []).map((one) => h("p", { class: "note" }, one)));
  if (data.sql) {
    made.append(h("details", { class: "sql" }, h("summary", {}, "SQL", h("span", { class: "sr" }, ` of ${data.caption}`)),
      h("pre", { tabindex: "0" }, h("code", {}, `trifecta sql RUN "${data.sql}"`))));
  }
  return made;
}

/** A fold; `fill` makes its content when it is first opened. */
export function fold(title, fill, { open = false, gist = "" } = {}) {
  const inside = h("div");
  const made = h("details", { class: "fold", open }, h("summary", {}, title, gist ? h("span", { class: "gist" }, gist) : null), inside);
  let filled = false;
  const once = () => {
    if (filled || !made.open) return;
    filled = true;
    Promise.resolve(fill()).then((one) => inside.replaceChildren(...[one].flat(Infinity)), (error) => inside.replaceChildren(problem(error)));
  };
  made.addEventListener("toggle", once);
  once();
  return made;
}

export function problem(error) { return h("p", { class: "problem", role: "alert" }, error.message || String(error)); }

export function lines(items) { return items.length ? h("ul", { class: "lines" }, items.map((one) => h("li", {}, one))) : null; }

export function select(label, options, chosen, change) {
  const made = h("select", { change: (event) => change(event.target.value) },
    options.map(([value, text]) => h("option", { value, selected: value === chosen }, text)));
  return h("label", {}, label, made);
}

export const link = (page, ...names) => `#/${[page, ...names.map(encodeURIComponent)].join("/")}`;
