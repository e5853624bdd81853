"use strict";
(() => {
  const root = document.documentElement;
  const button = document.getElementById("theme");
  const dark = () => root.dataset.theme
    ? root.dataset.theme === "dark"
    : window.matchMedia("(prefers-color-scheme: dark)").matches;
  const show = () => { button.textContent = dark() ? "Light page" : "Dark page"; };
  const wanted = location.hash.match(/theme=(dark|light)/);
  if (wanted) root.dataset.theme = wanted[1];
  button.hidden = false;
  button.addEventListener("click", () => { root.dataset.theme = dark() ? "light" : "dark"; show(); });
  show();

  // A link into what is folded unfolds it.
  const reveal = () => {
    const at = document.getElementById(location.hash.slice(1));
    if (!at) return;
    const own = at.querySelector(":scope > details");
    if (own) own.open = true;
    for (let up = at.closest("details"); up; up = up.parentElement.closest("details")) up.open = true;
    at.scrollIntoView();
  };
  window.addEventListener("hashchange", reveal);
  reveal();
  const jump = document.querySelector(".jump");
  document.addEventListener("click", (event) => {
    const link = event.target.closest("a[href^='#']");
    if (link && link.hash === location.hash) reveal();
    if (jump && (link || !jump.contains(event.target))) jump.open = false;
  });

  const unfold = document.getElementById("unfold");
  if (!unfold) return;
  unfold.hidden = false;
  unfold.addEventListener("click", () => {
    const open = unfold.textContent === "Unfold all";
    for (const one of document.querySelectorAll("main details:not(.sql)")) one.open = open;
    unfold.textContent = open ? "Fold all" : "Unfold all";
  });
})();
