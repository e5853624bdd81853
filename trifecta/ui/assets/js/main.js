// Which page is shown: the part of the address after #. Every page returns what ends it.
"use strict";
import { h, problem } from "./dom.js";
import { list } from "./list.js";
import { run } from "./run.js";
import { live } from "./live.js";
import { compare } from "./compare.js";
import { found } from "./found.js";

const PAGES = { "": list, run, live, compare, found };
const main = document.getElementById("main");
const root = document.documentElement;
let end = () => {};
let turn = 0;

if (new URLSearchParams(location.search).has("token")) history.replaceState(null, "", location.pathname + location.hash);

async function show() {
  end();
  end = () => {};
  const mine = ++turn;
  const [page, ...names] = location.hash.replace(/^#\/?/, "").split("/");
  const make = PAGES[page];
  if (location.hash === "#main") return;
  if (!make) { main.replaceChildren(problem(new Error(`no page ${page}`))); return; }
  const ended = new AbortController();
  const closers = [];
  end = () => { ended.abort(); closers.forEach((one) => one()); };
  const ending = (one) => closers.push(one);
  /** Draw now, and again whenever the window's width changes. */
  const drawn = (draw) => {
    draw();
    document.addEventListener("redraw", draw);
    ending(() => document.removeEventListener("redraw", draw));
  };
  const context = { main, signal: ended.signal, current: () => mine === turn, ending, drawn };
  try {
    main.setAttribute("aria-busy", "true");
    if (page) main.replaceChildren(h("p", { class: "note" }, "Reading."));
    await make(context, ...names.map(decodeURIComponent));
    if (mine === turn && page) main.focus({ preventScroll: true });
    if (mine === turn) scrollTo(0, 0);
  } catch (error) {
    if (mine === turn && error.name !== "AbortError") main.replaceChildren(problem(error), h("p", {}, h("a", { href: "#/" }, "All runs")));
  } finally {
    if (mine === turn) main.removeAttribute("aria-busy");
  }
}

const button = document.getElementById("theme");
const scheme = matchMedia("(prefers-color-scheme: dark)");
const dark = () => (root.dataset.theme ? root.dataset.theme === "dark" : scheme.matches);
const named = () => { button.textContent = dark() ? "Light page" : "Dark page"; };
button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; named(); show(); });
scheme.addEventListener("change", () => { named(); show(); });
named();

let width = main.clientWidth;
let waiting;
addEventListener("resize", () => {
  clearTimeout(waiting);
  waiting = setTimeout(() => { if (Math.abs(main.clientWidth - width) > 40) { width = main.clientWidth; document.dispatchEvent(new Event("redraw")); } }, 300);
});
document.querySelector(".skip").addEventListener("click", (event) => { event.preventDefault(); main.focus(); });
addEventListener("hashchange", show);
addEventListener("DOMContentLoaded", show);
if (document.readyState !== "loading") show();
