// What makes pages of releases more pleasant; all of them work without it.
"use strict";

// A page that waits for work asks again by itself.
const waiting = document.querySelector("[data-reload]");
if (waiting) setTimeout(() => location.reload(), Number(waiting.dataset.reload));

// A click on a column puts an example of a condition into the field that it helps with.
for (const button of document.querySelectorAll("[data-insert]")) {
  button.addEventListener("click", () => {
    const field = document.getElementById(button.dataset.into);
    const text = field.value.trim();
    const joint = !text ? (field.name === "q" ? "count where " : "") : field.name === "q" && !/\swhere\s/i.test(text) ? " where " : " and ";
    field.value = text + joint + button.dataset.insert;
    field.focus();
  });
}

// In a heat map one cell is in the way of the Tab key, and arrow keys lead to the others.
for (const heat of document.querySelectorAll("[data-heat]")) {
  const rows = [...heat.rows].map((row) => [...row.cells].slice(1).map((cell) => cell.querySelector("a.cell")));
  const cells = rows.flat().filter(Boolean);
  const start = heat.querySelector("a.chosen") || cells[0];
  for (const cell of cells) cell.tabIndex = cell === start ? 0 : -1;
  heat.addEventListener("keydown", (event) => {
    const step = { ArrowUp: [-1, 0], ArrowDown: [1, 0], ArrowLeft: [0, -1], ArrowRight: [0, 1] }[event.key];
    const row = rows.findIndex((line) => line.includes(event.target));
    if (!step || row < 0) return;
    event.preventDefault();
    const next = (rows[row + step[0]] || [])[rows[row].indexOf(event.target) + step[1]];
    if (!next) return;
    event.target.tabIndex = -1;
    next.tabIndex = 0;
    next.focus();
  });
}

// A release file can be dropped where it would be chosen.
for (const form of document.querySelectorAll("form[data-drop]")) {
  const field = form.querySelector("input[type=file]");
  for (const name of ["dragenter", "dragover"]) {
    form.addEventListener(name, (event) => { event.preventDefault(); form.classList.add("over"); });
  }
  form.addEventListener("dragleave", () => form.classList.remove("over"));
  form.addEventListener("drop", (event) => {
    event.preventDefault();
    form.classList.remove("over");
    if (!event.dataTransfer.files.length) return;
    field.files = event.dataTransfer.files;
    form.requestSubmit();
  });
}
