// Two runs beside each other.
"use strict";
import { get, h, lines, link, table } from "./dom.js";
import { intervals } from "./charts.js";

export async function compare(context, first, second) {
  const made = await get("/api/compare", { first, second }, context.signal);
  document.title = "Trifecta: two runs";
  context.drawn(() => context.main.replaceChildren(
    h("h1", {}, "Two runs beside each other"),
    h("dl", { class: "facts" }, h("dt", {}, "first"), h("dd", {}, h("a", { href: link("run", first) }, first), `: ${made.first}`), h("dt", {}, "second"), h("dd", {}, h("a", { href: link("run", second) }, second), `: ${made.second}`)),
    h("p", {}, h("a", { href: link("compare", second, first) }, "The other way round")),
    made.closing ? h("p", { class: "lead" }, made.closing) : "",
    h("p", {}, made.answer[0]), lines(made.answer.slice(1)) || "",
    ...made.warnings.map((one) => h("p", {}, h("span", { class: "warn" }, "! "), one)),
    made.points.length ? intervals("How far the two ratios lie apart: second ÷ first, with its interval", made.points.map((one) => ({ ...one, mark: one.differs ? 1 : 2 })), made.table) : table(made.table),
    lines([...made.below, ...made.differences]) || "",
    h("p", { class: "note" }, made.how),
  ));
}
