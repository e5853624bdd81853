/* Marks the section that is read in the navigation. */
(function () {
  "use strict";
  var links = Array.from(document.querySelectorAll(".top nav a"));
  if (!("IntersectionObserver" in window)) return;
  var watch = new IntersectionObserver(function (entries) {
    entries.forEach(function (entry) {
      if (!entry.isIntersecting) return;
      links.forEach(function (link) { link.classList.toggle("here", link.hash === "#" + entry.target.id); });
    });
  }, { rootMargin: "-40% 0px -55% 0px" });
  document.querySelectorAll("main section").forEach(function (section) { watch.observe(section); });
}());
