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
