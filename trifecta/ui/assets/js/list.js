// All runs of the folder, with their answers.
"use strict";
import { get, h, link, post, problem, say, select } from "./dom.js";

const pageOf = (one) => link(one.kind === "run" ? (one.written ? "live" : "run") : "found", one.name);
const MANY = 300;
// How a run ended (`state` of run.json), as a person says it. One that still says "running" and is not written was cut.
const ENDED = {
  decided: "every verdict decided", budget: "budget spent", blocks: "all blocks done", unmeasurable: "not measurable",
  captured: "captured", capped: "cap reached", refused: "refused by the server", interrupted: "interrupted",
  running: "interrupted",
};
const ending = (one) => (one.written ? "" : ENDED[one.state] || one.state || "");

export async function list(context) {
  const { main, signal } = context;
  let state = await get("/api/runs", {}, signal);
  document.getElementById("folder").textContent = state.folder;
  document.title = "Trifecta: runs";
  const wanted = { text: "", kind: "", state: "", order: "latest" };
  const chosen = new Set();
  let most = MANY;
  const count = h("p", { class: "note", role: "status" });
  const items = h("ul", { class: "runs" });
  const bar = h("div", { class: "bar", hidden: true });
  const search = h("input", { type: "search", placeholder: "title, level, server, answer", input: (event) => { wanted.text = event.target.value.toLowerCase(); most = MANY; draw(); } });
  const kinds = () => [["", "all"], ...[...new Set(state.runs.map((one) => one.kind))].sort().map((one) => [one, one])];
  const states = () => [["", "all"], ["now", "being measured"], ...[...new Set(state.runs.map(ending))].filter(Boolean).sort().map((one) => [one, one])];
  const tools = h("div", { class: "tools", role: "search" },
    h("label", { class: "search" }, "Search", search),
    select("Kind", kinds(), "", (value) => { wanted.kind = value; draw(); }),
    select("State", states(), "", (value) => { wanted.state = value; draw(); }),
    select("Order", [["latest", "latest first"], ["name", "by name"]], "latest", (value) => { wanted.order = value; draw(); }),
    h("button", { type: "button", class: "main", click: () => start(state.studies) }, "Measure a study"));

  const matches = (one) => {
    if (wanted.kind && one.kind !== wanted.kind) return false;
    if (wanted.state && (wanted.state === "now" ? !one.written : ending(one) !== wanted.state)) return false;
    const text = `${one.title} ${one.name} ${one.words} ${one.answer || ""}`.toLowerCase();
    return wanted.text.split(/\s+/).every((word) => text.includes(word));
  };
  const choose = (one) => (event) => {
    if (event.target.checked) chosen.add(one.name); else chosen.delete(one.name);
    drawBar();
  };
  const item = (one) => h("li", {},
    one.kind === "run" ? h("input", { type: "checkbox", "aria-label": `compare ${one.name}`, checked: chosen.has(one.name), change: choose(one) }) : h("span"),
    h("div", {},
      h("a", { href: pageOf(one) }, one.title), " ",
      one.written ? h("span", { class: "tag now" }, "being measured") : one.kind === "run" ? (one.state === "running" ? h("span", { class: "tag" }, "interrupted") : null) : h("span", { class: "tag" }, one.kind),
      h("div", { class: "about" }, [one.name, one.began && `${one.began.slice(0, 19).replace("T", " ")} UTC`, ending(one)].filter(Boolean).join(" · ")),
      one.problem ? h("p", { class: "problem" }, one.problem) : h("p", {}, one.answer ?? (one.written ? "Open it to follow it." : "The answer is being read."))));
  function drawBar() {
    bar.hidden = !chosen.size;
    const two = [...chosen];
    bar.replaceChildren(`${chosen.size} chosen`, h("button", { type: "button", class: "main", disabled: two.length !== 2, click: () => { location.hash = link("compare", ...two); } }, "Compare the two"),
      h("button", { type: "button", click: () => { chosen.clear(); draw(); } }, "Choose none"));
  }
  function draw() {
    let there = state.runs.filter(matches);
    if (wanted.order === "name") there = [...there].sort((a, b) => a.name.localeCompare(b.name));
    const shown = there.slice(0, most);
    count.textContent = there.length === state.runs.length ? `${there.length} in this folder` : `${there.length} of ${state.runs.length}`;
    items.replaceChildren(...shown.map(item));
    if (there.length > most) items.append(h("li", {}, h("span"), h("button", { type: "button", click: () => { most += MANY; draw(); } }, `Show more of ${there.length}`)));
    if (!state.runs.length) count.textContent = "No run lies in this folder yet: measure a study, or start `trifecta race` in a terminal.";
    drawBar();
  }
  main.replaceChildren(h("h1", {}, "Runs"), tools, count, items, bar, jobsPart(context));
  draw();
  say(count.textContent);

  let timer;
  const later = () => {
    const reading = state.runs.some((one) => one.answer === null && !one.problem && !one.written);
    timer = setTimeout(async () => {
      if (!document.hidden) {
        try {
          const fresh = await get("/api/runs", {}, signal);
          if (JSON.stringify(fresh.runs) !== JSON.stringify(state.runs)) {
            const focused = document.activeElement?.closest(".runs") ? document.activeElement.getAttribute("href") : null;
            state = fresh;
            draw();
            if (focused) items.querySelector(`a[href="${CSS.escape(focused)}"]`)?.focus();
          }
          state.again_s = fresh.again_s;
        } catch (error) {
          if (error.name === "AbortError") return;
          count.replaceChildren(problem(error));
          return;
        }
      }
      later();
    }, 1000 * (reading ? Math.min(2, state.again_s) : state.again_s));
  };
  later();
  context.ending(() => clearTimeout(timer));
}

function start(studies) {
  const study = h("select", { id: "study" }, studies.map((one) => h("option", { value: one, selected: one === "race" }, one)));
  const budget = h("input", { placeholder: "as the study has it", id: "budget" });
  const settings = h("input", { placeholder: "path=clean protocol=h2,h3", id: "settings" });
  const told = h("p", { class: "problem", role: "alert" });
  const dialog = h("dialog", { "aria-label": "Measure a study" });
  const go = async (event) => {
    event.preventDefault();
    try {
      const made = await post("/api/start", { study: study.value, budget: budget.value.trim(), set: settings.value.split(/\s+/).filter(Boolean) });
      dialog.close();
      location.hash = link("live", made.run);
    } catch (error) { told.textContent = error.message; }
  };
  dialog.append(h("form", { submit: go }, h("h2", {}, "Measure a study"),
    h("p", { class: "note" }, "As `trifecta run` does in a terminal, into this folder. It is stopped when `trifecta ui` ends."),
    h("div", { class: "tools" }, h("label", {}, "Study", study), h("label", {}, "Budget", budget), h("label", {}, "Set", settings)),
    told, h("p", {}, h("button", { type: "submit", class: "main" }, "Start"), " ", h("button", { type: "button", click: () => dialog.close() }, "Cancel"))));
  dialog.addEventListener("close", () => dialog.remove());
  document.body.append(dialog);
  dialog.showModal();
}

/** What was started from this page, where anything was. */
export function jobsPart({ signal }) {
  const part = h("section", { "aria-label": "Started from this page" });
  get("/api/jobs", {}, signal).then(({ jobs }) => {
    if (!jobs.length) return;
    part.append(h("h2", {}, "Started from this page"), h("ul", { class: "lines" }, jobs.map((one) => h("li", {},
      h("code", {}, one.command), " ", h("span", { class: "tag" }, one.code === null ? "runs" : `ended with ${one.code}`),
      one.said.length && one.code !== 0 && one.code !== null ? h("pre", { tabindex: "0" }, one.said.join("\n")) : null))));
  }, () => {});
  return part;
}
