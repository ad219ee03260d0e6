"use strict";
const data = JSON.parse(document.getElementById("data").textContent);
const root = document.documentElement;
const cells = [...document.querySelectorAll(".cell")];
const detail = document.getElementById("detail");
const canvas = document.getElementById("picture");
let pinned = null;

const sign = (x) => (x >= 0 ? "+" : "\u2212") + Math.abs(x).toFixed(2);

function element(tag, text, parent, className) {
  const made = document.createElement(tag);
  made.textContent = text;
  if (className) made.className = className;
  parent.append(made);
  return made;
}

function row(table, name, value, isTarget) {
  const made = element("tr", "", table, isTarget ? "target" : "");
  element("td", name, made);
  element("td", value, made, "number");
}

// All groups inside a group, itself included.
function inside(id) {
  const found = new Set([id]);
  for (const each of found) data.groups[each].children.forEach((child) => found.add(child));
  return found;
}

function paint(members) {
  if (!canvas) return;
  const { pixels, layout } = data.image;
  const [height, width] = [pixels.length, pixels[0].length];
  [canvas.height, canvas.width] = [height, width];
  const context = canvas.getContext("2d");
  const bits = context.createImageData(width, height);
  const chosen = members && new Set(members);
  for (let y = 0; y < height; y++) {
    for (let x = 0; x < width; x++) {
      const value = pixels[y][x];
      const rgb = Array.isArray(value) ? [...value] : [value, value, value];
      if (chosen && chosen.has(layout[y][x])) {
        [230, 159, 0].forEach((c, i) => { rgb[i] = Math.round(0.35 * rgb[i] + 0.65 * c); });
      }
      bits.data.set([...rgb, 255], 4 * (y * width + x));
    }
  }
  context.putImageData(bits, 0, 0);
}

function show(id) {
  const group = data.groups[id];
  const within = inside(id);
  for (const cell of cells) {
    const other = Number(cell.dataset.group);
    cell.classList.toggle("chosen", other === id);
    cell.classList.toggle("inside", other !== id && within.has(other));
  }
  detail.replaceChildren();
  element("h2", group.text, detail);
  const facts = element("table", "", detail);
  row(facts, "score", sign(group.score), true);
  if (group.children.length) {
    const sum = group.children.reduce((total, child) => total + data.groups[child].score, 0);
    row(facts, "its parts\u2019 scores add up to", sign(sum));
  }
  row(facts, data.unit, group.members.length);
  row(facts, "joined in round", group.order);
  if (group.children.length) {
    element("p", "joined from", detail, "faint");
    const parts = element("table", "", detail);
    group.children.forEach((child) => row(parts, data.groups[child].text, sign(data.groups[child].score)));
  }
  element("p", "scores per class", detail, "faint");
  const scores = element("table", "", detail);
  group.scores.forEach((score, c) => row(scores, data.classes[c], sign(score), c === data.target));
  paint(group.members);
}

function clear() {
  if (pinned !== null) { show(pinned); return; }
  cells.forEach((cell) => cell.classList.remove("chosen", "inside"));
  detail.replaceChildren();
  element("p", "Point at a group, or move through them with the Tab key. A click keeps it.", detail, "faint");
  paint(null);
}

for (const cell of cells) {
  const id = Number(cell.dataset.group);
  cell.addEventListener("pointerenter", () => show(id));
  cell.addEventListener("pointerleave", clear);
  cell.addEventListener("focus", () => show(id));
  cell.addEventListener("blur", clear);
  cell.addEventListener("click", () => { pinned = pinned === id ? null : id; show(id); });
}

if (canvas) {
  // A pixel shows the smallest group of several units that it is in.
  canvas.addEventListener("pointermove", (event) => {
    const { layout } = data.image;
    const box = canvas.getBoundingClientRect();
    const y = Math.floor((event.clientY - box.top) / box.height * layout.length);
    const x = Math.floor((event.clientX - box.left) / box.width * layout[0].length);
    const unit = layout[y] && layout[y][x];
    const found = data.groups.findIndex((g) => g.children.length && g.members.includes(unit));
    if (found >= 0) show(found);
  });
  canvas.addEventListener("pointerleave", clear);
}

const slider = document.getElementById("round");
slider.addEventListener("input", () => {
  document.getElementById("round-number").textContent = slider.value;
  cells.forEach((cell) => cell.classList.toggle("later", Number(cell.dataset.order) > Number(slider.value)));
});

const button = document.getElementById("theme");
button.addEventListener("click", () => {
  root.dataset.theme = root.dataset.theme === "dark" ? "light" : "dark";
});
if (matchMedia("(prefers-color-scheme: dark)").matches) root.dataset.theme = "dark";
clear();
