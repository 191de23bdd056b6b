"use strict";
// Everything is on the page already: stepping only says what is seen and what is marked.
const root = document.documentElement;
const files = [...document.querySelectorAll(".file")].map(prepared);
let shown = files[0];

function prepared(article) {
  const data = article.querySelector("script");
  const stops = data ? JSON.parse(data.textContent) : [];
  const file = { article, stops, at: 0, timer: 0 };
  file.nodes = byKey(article, ".graph [data-node]", (e) => e.dataset.node);
  file.edges = byKey(article, ".graph [data-from]", (e) => e.dataset.from + " " + e.dataset.to);
  file.marks = [...article.querySelectorAll("mark[data-at]")];
  file.sections = stops.map((stop) => document.getElementById(stop.id));
  const made = new Set(stops.map((stop) => stop.node));
  file.given = [...file.nodes.keys()].filter((key) => !made.has(key));
  file.bar = article.querySelector(".bar");
  if (file.bar) {
    file.range = file.bar.querySelector("input");
    file.output = file.bar.querySelector("output");
    file.range.addEventListener("input", () => go(file, Number(file.range.value)));
    for (const button of file.bar.querySelectorAll("button")) {
      button.addEventListener("click", () => press(file, button.dataset.go));
    }
  }
  for (const [key, elements] of file.nodes) {
    for (const element of elements) element.addEventListener("click", () => visit(file, key));
  }
  for (const mark of file.marks) {
    mark.addEventListener("click", (event) => {
      event.stopPropagation();
      visit(file, mark.dataset.at.split(" ")[0]);
    });
  }
  return file;
}

function byKey(article, selector, keyed) {
  const found = new Map();
  for (const element of article.querySelectorAll(selector)) {
    const key = keyed(element);
    found.set(key, [...(found.get(key) || []), element]);
  }
  return found;
}

// The step of a node on the side where one is: forward before the seed, backward after it.
function visit(file, node) {
  const seed = file.stops.findIndex((stop) => stop.phase === "seed");
  const phase = file.at < seed ? "forward" : "backward";
  const at = file.stops.findIndex((stop) => stop.node === node && stop.phase === phase);
  if (at >= 0) go(file, at);
}

function press(file, word) {
  const last = file.stops.length - 1;
  if (word === "play") return play(file, !file.timer);
  play(file, false);
  const to = { first: 0, back: file.at - 1, next: file.at + 1, last }[word];
  go(file, Math.max(0, Math.min(last, to)));
}

function play(file, on) {
  clearInterval(file.timer);
  file.timer = 0;
  if (!file.bar) return;
  if (on) {
    if (file.at === file.stops.length - 1) go(file, 0);
    file.timer = setInterval(() => {
      if (file.at === file.stops.length - 1) play(file, false);
      else go(file, file.at + 1);
    }, 1500);
  }
  const button = file.bar.querySelector("[data-go=play]");
  button.classList.toggle("on", on);
  button.setAttribute("aria-label", on ? "pause" : "play");
}

function go(file, at, quiet) {
  file.at = at;
  const stop = file.stops[at];
  file.sections.forEach((section, i) => section.classList.toggle("on", i === at));
  file.range.value = String(at);
  file.range.setAttribute("aria-valuetext", file.sections[at].querySelector(".phase").textContent);
  file.output.textContent = `${at + 1} of ${file.stops.length}: ${file.sections[at].querySelector(".phase").textContent}`;
  const last = file.stops.length - 1;
  for (const button of file.bar.querySelectorAll("button")) {
    const back = button.dataset.go === "first" || button.dataset.go === "back";
    const on = button.dataset.go === "next" || button.dataset.go === "last";
    button.setAttribute("aria-disabled", String((back && at === 0) || (on && at === last)));
  }
  paint(file, at);
  for (const mark of file.marks) {
    const now = mark.dataset.at.split(" ").includes(stop.node);
    mark.classList.remove("forward", "backward", "seed");
    if (!now) continue;
    mark.classList.add(stop.phase);
    centre(file.article.querySelector(".code"), mark);
  }
  if (!quiet) address(stop.id);
}

// What was computed is seen; a node has got its gradient when the last path to it has arrived.
function paint(file, at) {
  const add = (elements, ...names) => (elements || []).forEach((e) => e.classList.add(...names));
  const last = new Map();
  file.stops.forEach((stop, i) => stop.edges.forEach(([from]) => last.set(from, i)));
  for (const elements of [...file.nodes.values(), ...file.edges.values()]) {
    for (const e of elements) e.classList.remove("seen", "part", "got", "now");
  }
  file.stops.slice(0, at + 1).forEach((stop, i) => {
    const forward = stop.phase === "forward";
    const now = i === at ? ["now"] : [];
    for (const [from, to] of stop.edges) {
      add(file.edges.get(from + " " + to), forward ? "seen" : "got", ...now);
      add(file.nodes.get(from), forward ? "seen" : last.get(from) <= at ? "got" : "part");
    }
    add(file.nodes.get(stop.node), forward ? "seen" : "got", ...now);
  });
  const [node] = file.nodes.get(file.stops[at].node) || [];
  centre(file.article.querySelector(".graph"), node);
  for (const key of file.given) add(file.nodes.get(key), "seen");
}

// What is larger than its pane is moved so that an element is seen.
function centre(pane, element) {
  if (!pane || !element) return;
  pane.scrollLeft = 0;
  const here = element.getBoundingClientRect();
  const there = pane.getBoundingClientRect();
  if (pane.scrollHeight > pane.clientHeight) {
    pane.scrollTop += here.top + here.height / 2 - there.top - there.height / 2;
  }
  if (here.right > there.right) {
    pane.scrollLeft = here.left - there.left - Math.max(64, (there.width - here.width) / 2);
  }
}

// The address of the step, so that it can be linked; not every place where a page is shown has one.
function address(id) {
  try {
    history.replaceState(null, "", "#" + id);
  } catch {
    return;
  }
}

function show(file) {
  play(shown, false);
  shown = file;
  for (const each of files) each.article.classList.toggle("on", each === file);
  for (const link of document.querySelectorAll("nav a")) {
    if (link.hash === "#" + file.article.id) link.setAttribute("aria-current", "true");
    else link.removeAttribute("aria-current");
  }
}

function follow() {
  const id = decodeURIComponent(location.hash.slice(1));
  for (const file of files) {
    const at = file.stops.findIndex((stop) => stop.id === id);
    if (at >= 0 || file.article.id === id) {
      show(file);
      if (at >= 0) go(file, at, true);
      return;
    }
  }
}

const KEYS = { ArrowRight: "next", ArrowLeft: "back", Home: "first", End: "last", " ": "play" };
document.addEventListener("keydown", (event) => {
  const word = KEYS[event.key];
  const held = event.altKey || event.ctrlKey || event.metaKey;
  if (!word || held || !shown.bar || event.target.matches("input")) return;
  if (event.key === " " && event.target.matches("button, summary, a")) return;
  event.preventDefault();
  press(shown, word);
});

root.classList.add("js");
for (const file of files) if (file.bar) go(file, 0, true);
show(shown);
follow();
addEventListener("hashchange", follow);
