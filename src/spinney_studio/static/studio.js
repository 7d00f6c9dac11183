// What makes the studio more pleasant; every page works without it, but for progress that moves by itself.
"use strict";

// After a form came back with faults, whoever reads by ear or keyboard starts at the list of them.
const first = document.querySelector("[data-focus]");
if (first) first.focus();

// A form is sent once: a second click on its button does nothing.
for (const form of document.querySelectorAll("form[data-once]")) {
  form.addEventListener("submit", (event) => {
    if (form.dataset.sent) event.preventDefault();
    form.dataset.sent = "yes";
    for (const button of form.querySelectorAll("button")) button.setAttribute("aria-disabled", "true");
  });
}
addEventListener("pageshow", () => {
  for (const form of document.querySelectorAll("form[data-once]")) {
    delete form.dataset.sent;
    for (const button of form.querySelectorAll("button")) button.removeAttribute("aria-disabled");
  }
});

// A file that is dropped on a card is sent with the form in it.
for (const place of document.querySelectorAll("[data-drop]")) {
  const input = place.querySelector("input[type=file]");
  const over = (event) => {
    event.preventDefault();
    place.classList.add("over");
  };
  place.addEventListener("dragenter", over);
  place.addEventListener("dragover", over);
  place.addEventListener("dragleave", () => place.classList.remove("over"));
  place.addEventListener("drop", (event) => {
    event.preventDefault();
    place.classList.remove("over");
    if (event.dataTransfer.files.length) {
      input.files = event.dataTransfer.files;
      input.form.requestSubmit();
    }
  });
}

// What needs a script is shown where there is one.
for (const part of document.querySelectorAll("[data-needs-script]")) part.hidden = false;
for (const input of document.querySelectorAll("input[data-fills]")) {
  input.addEventListener("change", async () => {
    if (input.files.length) document.getElementById(input.dataset.fills).value = await input.files[0].text();
  });
}

// Progress that moves by itself; when the work is over, the page is loaded again.
for (const part of document.querySelectorAll("[data-events]")) {
  const title = part.querySelector("[data-title]");
  const bar = part.querySelector("[data-bar]");
  const source = new EventSource(part.dataset.events);
  source.addEventListener("message", (event) => {
    const told = JSON.parse(event.data);
    if (told.state !== "running" && told.state !== "queued") {
      source.close();
      location.reload();
      return;
    }
    if (told.title && title.textContent !== told.title) title.textContent = told.title;
    const said = part.querySelector("[data-said]");
    if (said && told.said && said.textContent !== told.said) said.textContent = told.said;
    if (told.total) {
      bar.max = told.total;
      bar.value = told.done;
    } else {
      bar.removeAttribute("value");
    }
  });
}
