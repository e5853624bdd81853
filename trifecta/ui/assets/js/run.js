// A run afterwards: its answer, its intervals, cells folded, any metric against any factor, a trial on a click.
"use strict";
import { fold, get, h, lines, link, post, problem, select, table } from "./dom.js";
import { byLevel, closing, curves, forest, legend, samples } from "./charts.js";

export const row = (one, pick) => ({ ...one, decided: one.kind !== "undecided", label: `${one.place}: ${one.pair}: ${one.headline}`, said: `${one.place}: ${one.statement}`, pick });

export async function run(context, name) {
  const { main, signal } = context;
  let made = null;
  // The whole answer compares every file of the run with its manifest first; intervals are there at once.
  get("/api/first", { name }, signal).then((first) => { if (!made && context.current()) preview(main, first); }, () => {});
  made = await get("/api/run", { name }, signal);
  document.title = `Trifecta: ${made.title}`;
  const draw = () => {
    const cells = made.cells.map((one) => cell(context, name, made, one));
    const reveal = (key) => () => {
      const at = cells[made.cells.findIndex((one) => one.cell === key)];
      at.open = true;
      at.querySelector("summary").focus();
      at.scrollIntoView({ block: "start" });
    };
    const every = made.cells.flatMap((one) => one.verdicts.map((verdict) => row(verdict, reveal(one.cell))));
    main.replaceChildren(
      h("h1", {}, made.title),
      h("p", { class: "note" }, name, made.state ? ` · ${made.state}` : ""),
      ...made.warnings.map((one) => h("p", { class: "problem", role: "alert" }, one)),
      h("p", { class: "lead" }, [made.headline, ...made.uneven].join(" ")),
      ...made.elsewhere.map((one) => h("p", {}, one)),
      made.next ? h("p", {}, h("b", {}, "Next: "), made.next.replaceAll("`", "")) : "",
      buttons(context, name, made),
      made.opening ? table(made.opening) : "",
      every.length ? h("section", { "aria-label": "Comparisons" }, h("h2", {}, "Comparisons"), legend(made.arms),
        forest("Every comparison: its ratio with the interval that holds alone. Filled: decided", every, { sides: made.sides, margin: made.margin, data: made.verdicts })) : "",
      h("section", { "aria-label": "Cells" }, h("h2", {}, "Cells"), cells),
      explore(context, name, made),
      h("section", { "aria-label": "What is said of it" }, h("h2", {}, "What it rests on"), lines([...made.lines.map((one) => one.replaceAll("`", "")), ...made.said, ...made.left_out.map((one) => `Left out: ${one}`)])),
    );
  };
  context.drawn(draw);
}

function preview(main, first) {
  const every = first.cells.flatMap((one) => one.verdicts.map((verdict) => row(verdict)));
  main.replaceChildren(...[h("h1", {}, first.title), h("p", { class: "note" }, `${first.decided}, ${first.of}. The run's files are being compared with its manifest.`),
    every.length ? [legend(first.arms), forest("Every comparison: its ratio with the interval that holds alone. Filled: decided", every, { sides: first.sides, margin: first.margin })] : []].flat());
}

function buttons(context, name, made) {
  const told = h("span", { role: "status" });
  const longer = h("input", { placeholder: "5 min", size: "8" });
  const resume = async () => {
    try {
      await post("/api/resume", { name, budget: longer.value.trim() });
      location.hash = link("live", name);
    } catch (error) { told.replaceChildren(problem(error)); }
  };
  return h("p", { class: "buttons" }, h("a", { href: link("live", name) }, "Follow it"), " ",
    made.report ? [h("a", { href: `/api/report?${new URLSearchParams({ name })}`, download: "" }, "Download the report"), " "] : "",
    h("button", { type: "button", click: resume }, "Resume or extend"), " ", h("label", {}, "this much longer: ", longer), " ", told);
}

function cell(context, name, made, one) {
  const { failed, warned, unknown, passed } = one.checks;
  const checks = [[failed, "failed"], [warned, "warned"], [unknown, "unknown"]].filter(([count]) => count).map(([count, word]) => `${count} ${word}`).join(", ") || (passed ? "checks passed" : "no checks");
  return fold(one.place, async () => {
    const parts = [lines(one.verdicts.map((verdict) => verdict.statement))];
    const inner = await get("/api/cell", { name, cell: one.cell }, context.signal);
    if (inner.closing.length) parts.push(blockByBlock(inner.closing));
    if (inner.curves.length) parts.push(curves(inner));
    parts.push(h("div", { class: "tables" }, inner.tables.map(table)), inner.notes.map((note) => h("p", { class: "note" }, note)));
    return parts.filter(Boolean);
  }, { gist: `${one.order.join(", ")} · ${checks}` });
}

/** How the intervals of a cell closed in, one comparison at a time. */
function blockByBlock(every) {
  const picture = h("div");
  const show = (which) => { const one = every[Number(which)]; picture.replaceChildren(closing(`${one.pair} after each block`, one.points, one.sql)); };
  show(0);
  return h("section", { "aria-label": "Block by block" }, h("h3", {}, "Block by block"),
    h("div", { class: "tools" }, select("Comparison", every.map((one, i) => [String(i), one.pair]), "0", show)), picture);
}

function explore(context, name, made) {
  const wanted = { metric: made.metrics.some((one) => one.name === made.metric) ? made.metric : made.metrics[0]?.name, factor: made.factors[0] };
  const picture = h("div");
  const opened = h("section", { "aria-live": "polite", "aria-label": "A trial", tabindex: "-1" });
  const pick = async (trial) => {
    opened.replaceChildren(h("p", { class: "note" }, `Reading ${trial}.`));
    try { opened.replaceChildren(...await trialPart(context, name, trial)); opened.focus({ preventScroll: true }); opened.scrollIntoView({ block: "start", behavior: "auto" }); } catch (error) { opened.replaceChildren(problem(error)); }
  };
  let drawn = 0;
  const draw = async () => {
    const mine = ++drawn;
    picture.setAttribute("aria-busy", "true");
    try {
      const values = await get("/api/values", { name, ...wanted }, context.signal);
      if (mine === drawn) picture.replaceChildren(legend(values.arms), values.points.length ? byLevel(values, pick) : h("p", {}, "No trial has a value of this metric."),
        values.without ? h("p", { class: "note" }, `${values.without} trials have no value of this metric.`) : "");
    } catch (error) { if (error.name !== "AbortError") picture.replaceChildren(problem(error)); }
    picture.removeAttribute("aria-busy");
  };
  const tools = h("div", { class: "tools" },
    select("Metric", made.metrics.map((one) => [one.name, one.label]), wanted.metric, (value) => { wanted.metric = value; draw(); }),
    select("Against", made.factors.map((one) => [one, one.replaceAll("_", " ")]), wanted.factor, (value) => { wanted.factor = value; draw(); }));
  if (wanted.metric) draw();
  return h("section", { "aria-label": "Any metric against any factor" }, h("h2", {}, "Any metric against any factor"), tools, picture, opened);
}

async function trialPart({ signal }, name, trial) {
  const made = await get("/api/trial", { name, trial }, signal);
  const file = (kind, one) => `/api/file?${new URLSearchParams({ name, trial, kind, file: one })}`;
  const parts = [
    h("h3", {}, `${trial}: ${made.arm.name}, ${made.place}${made.valid ? "" : " (does not count)"}`),
    h("dl", { class: "facts" }, made.facts.flatMap(([word, value]) => [h("dt", {}, word), h("dd", {}, value)])),
  ];
  if (made.samples.points) parts.push(samples(made.samples, made.arm.mark));
  const kept = made.kept;
  if (kept.har.length) parts.push(h("h4", {}, "HAR"), h("ul", { class: "lines" }, kept.har.map((one) => h("li", {}, h("a", { href: file("har", one), download: "" }, one)))));
  for (const film of kept.films) {
    parts.push(h("h4", {}, `Film strip of visit ${film.visit}`), h("div", { class: "films", tabindex: "0", role: "region", "aria-label": `film strip of visit ${film.visit}` },
      film.pictures.map((one) => h("figure", {}, h("img", { src: file("frames", one.file), alt: `the page after ${one.at}`, loading: "lazy" }), h("figcaption", {}, one.at)))));
  }
  parts.push(fold("Checks", () => table(made.checks), { open: !made.valid }));
  made.samples.tables.forEach((one) => parts.push(fold(one.caption, () => table(one))));
  made.trace.forEach((one) => parts.push(fold(one.caption, () => table(one))));
  return parts;
}
