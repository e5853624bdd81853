// Maps, ladders and reproductions.
"use strict";
import { get, h, lines, table } from "./dom.js";
import { intervals, places } from "./charts.js";

const MARKS = { confirmed: 3, contradicted: 1, open: 0 };

export async function found(context, name) {
  const made = await get("/api/found", { name }, context.signal);
  document.title = `Trifecta: ${made.title}`;
  context.drawn(() => context.main.replaceChildren(
    h("h1", {}, made.title), h("p", { class: "note" }, `${name} · ${made.kind}`), h("p", { class: "lead" }, made.headline), lines(made.lines) || "",
    ...pictures(made)));
}

function pictures(made) {
  if (made.kind === "map") return [made.places.length ? places(made) : table(made.table)];
  if (made.kind === "ladder") return [h("p", {}, made.quantity), intervals("Rung by rung: the ratio with its interval", made.rungs.map((one) => ({ ...one, label: one.said })), made.table)];
  const points = made.points.map((one) => ({ ...one, mark: MARKS[one.answer] ?? 2, decided: one.answer !== "open", label: `${one.answer}: ${one.text}` }));
  return [points.length ? intervals("Claims that are a ratio: ours with its interval", points, made.table) : table(made.table)];
}
