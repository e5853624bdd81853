// A run while it happens, by server-sent events.
"use strict";
import { get, h, link, lines, post, problem, say, select } from "./dom.js";
import { closing, forest, legend } from "./charts.js";
import { row } from "./run.js";
import { jobsPart } from "./list.js";

const TRIES_S = 60;
const keyOf = (one) => `${one.cell} ${one.arm} ${one.reference}`;

export async function live(context, name) {
  const { main } = context;
  const told = h("p", { role: "status" });
  const body = h("div");
  const seen = new Map(); // by comparison how its interval closed in
  let state = null;
  let shown = "";
  main.replaceChildren(h("h1", {}, name), told, body);
  document.title = `Trifecta: ${name}`;

  const asked = (path) => async () => {
    try {
      const made = await post(path, { name });
      told.textContent = made.said || "asked";
    } catch (error) { told.replaceChildren(problem(error)); }
  };

  function draw() {
    const now = state;
    const every = now.cells.flatMap((cell) => cell.verdicts);
    const options = every.map((one) => [keyOf(one), `${one.place}: ${one.pair}`]);
    if (!options.some(([key]) => key === shown)) shown = options[0]?.[0] || "";
    const part = now.planned ? [now.trials, now.planned, "trials"] : now.budget_ns ? [now.spent_ns, now.budget_ns, "budget"] : null;
    const focused = document.activeElement?.id;
    const finished = !now.written;
    body.replaceChildren(
      h("p", { class: "status" }, now.written ? h("span", { class: "tag now" }, "being measured") : h("span", { class: "tag" }, now.ended ? "ended" : now.state === "running" ? "interrupted" : now.state || "not begun"), ` ${now.decided}, ${now.of}`, now.left ? `, ${now.left}` : ""),
      part ? h("p", {}, h("progress", { class: "meter", max: part[1], value: Math.min(part[0], part[1]), "aria-label": part[2] })) : "",
      now.reason && !(finished && now.reason === now.ended) ? h("p", { class: "note" }, `why: ${now.reason}`) : "",
      finished && now.ended ? h("p", {}, now.ended) : "",
      h("p", { class: "buttons" },
        now.written ? h("button", { type: "button", id: "stop", click: asked("/api/stop") }, "Stop") : h("button", { type: "button", id: "resume", class: "main", click: asked("/api/resume") }, "Resume"), " ",
        h("a", { href: link("run", name) }, finished ? "What it says" : "What it says so far")),
      every.length ? h("section", { "aria-label": "Comparisons" }, legend(now.arms),
        forest("Every comparison after its last block. Filled: decided", every.map((one) => row(one)), { sides: now.sides, margin: now.margin,
          data: { caption: "Comparisons", columns: ["comparison", "verdict", "alone", "among all", "blocks", "needs"], numeric: [2, 3, 4], sql: "", rows: every.map((one) => [`${one.place}: ${one.pair}`, one.headline, one.interval, one.family, String(one.blocks ?? 0), one.needs]) } })) : h("p", {}, "No block is complete yet."),
      (seen.get(shown) || []).length > 1 ? h("section", { "aria-label": "Block by block" }, h("h2", {}, "Block by block"), h("div", { class: "tools" }, select("Comparison", options, shown, (value) => { shown = value; draw(); })),
        closing("Its interval after each block", seen.get(shown))) : "",
      h("section", { "aria-label": "Trials that do not count" }, h("h2", {}, "Trials that do not count"),
        now.failed_trials ? [h("p", {}, `${now.failed_trials} of ${now.trials}`), h("ul", { class: "lines fails", tabindex: "0" }, now.failed.map((one) => h("li", {}, one.check ? h("b", {}, `${one.check}: `) : "", one.said)))] : h("p", {}, "None.")),
    );
    if (focused) document.getElementById(focused)?.focus();
  }

  // A run that was only just started has no folder yet.
  const began = Date.now();
  const waitFor = async () => {
    for (;;) {
      try { return await follow(); } catch (error) {
        if (!context.current()) return;
        const { jobs } = await get("/api/jobs", {}, context.signal);
        const job = jobs.find((one) => one.run === name);
        const ended = job && job.code !== null;
        if (!job || ended || Date.now() - began > TRIES_S * 1000) {
          told.replaceChildren(problem(ended ? new Error(job.said.join("\n") || error.message) : error), jobsPart(context));
          return;
        }
        told.textContent = "It is being set up.";
        await new Promise((done) => setTimeout(done, 1500));
      }
    }
  };

  async function follow() {
    await get("/api/known", { name }, context.signal);
    const source = new EventSource(`/api/live?${new URLSearchParams({ name })}`);
    context.ending(() => source.close());
    source.addEventListener("open", () => seen.clear()); // all of it comes again
    source.addEventListener("past", (event) => JSON.parse(event.data).forEach((one) => seen.set(keyOf(one), [...(seen.get(keyOf(one)) || []).slice(0, one.keep), ...one.points])));
    source.addEventListener("state", (event) => {
      if (!context.current()) { source.close(); return; }
      const before = state;
      state = JSON.parse(event.data);
      main.querySelector("h1").textContent = state.title;
      told.textContent = "";
      draw();
      if (before && (before.blocks !== state.blocks || before.written !== state.written)) say(state.written ? `${state.decided}, ${state.of}` : `ended: ${state.ended || state.state}`);
    });
    source.addEventListener("problem", (event) => told.replaceChildren(problem(new Error(JSON.parse(event.data).error))));
    source.addEventListener("error", () => { if (source.readyState === EventSource.CLOSED) told.replaceChildren(problem(new Error("the server has gone"))); });
    context.drawn(() => state && draw());
  }
  await waitFor();
}
