/* Shows the tours of the catalogue: a table, a search over all of them, and a chart. No timers, nothing random. */
(function () {
  "use strict";
  var tours = [].concat.apply([], window.catalogue || []);
  var body = document.querySelector("#tours tbody");
  var found = document.getElementById("found");

  function index(rows) {
    var words = new Map();
    rows.forEach(function (row, at) {
      (row.name + " " + row.region + " " + row.text).toLowerCase().split(/[^a-z]+/).forEach(function (word) {
        if (word.length < 3) return;
        for (var end = 3; end <= word.length; end += 1) {
          var beginning = word.slice(0, end);
          if (!words.has(beginning)) words.set(beginning, new Set());
          words.get(beginning).add(at);
        }
      });
    });
    return words;
  }

  function show(rows) {
    var part = document.createDocumentFragment();
    rows.slice(0, 60).forEach(function (row) {
      var line = document.createElement("tr");
      [row.name, row.region, row.days, row.ascent + " m", "€ " + row.price].forEach(function (text) {
        var cell = document.createElement("td");
        cell.textContent = text;
        line.appendChild(cell);
      });
      part.appendChild(line);
    });
    body.replaceChildren(part);
    found.textContent = rows.length + " of " + tours.length + " tours";
  }

  function chart(rows) {
    var bins = new Array(48).fill(0);
    rows.forEach(function (row) { bins[Math.min(47, Math.floor(row.price / 50))] += 1; });
    var most = Math.max.apply(null, bins) || 1;
    var space = "http://www.w3.org/2000/svg";
    var svg = document.createElementNS(space, "svg");
    svg.setAttribute("viewBox", "0 0 960 260");
    bins.forEach(function (count, at) {
      var bar = document.createElementNS(space, "rect");
      var high = Math.round(220 * count / most);
      bar.setAttribute("x", String(at * 20 + 3));
      bar.setAttribute("y", String(230 - high));
      bar.setAttribute("width", "14");
      bar.setAttribute("height", String(high));
      bar.setAttribute("fill", at % 2 ? "#0d5c75" : "#3d8aa3");
      svg.appendChild(bar);
    });
    var words = document.createElementNS(space, "text");
    words.setAttribute("x", "3");
    words.setAttribute("y", "252");
    words.setAttribute("font-size", "13");
    words.textContent = "Tours by price, from € 0 to € 2,400";
    svg.appendChild(words);
    document.getElementById("chart").replaceChildren(svg);
  }

  var words = index(tours);
  show(tours);
  chart(tours);
  document.getElementById("search").addEventListener("input", function (event) {
    var asked = event.target.value.toLowerCase().trim();
    show(asked ? tours.filter(function (_, at) { return (words.get(asked) || new Set()).has(at); }) : tours);
  });
  document.documentElement.dataset.ready = String(tours.length);
}());
