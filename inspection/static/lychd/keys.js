"use strict";
// Single keys for whoever goes through the queue. They are silent while somebody types, with a modifier held, and once
// they are switched off, which this browser remembers (WCAG 2.1.4). Each presses what the page shows, and nothing else.
const help = document.querySelector("[data-keys-help]");
const control = document.querySelector("[data-keys-switch]");
const remembered = "lychd-keys";

help.hidden = false;
control.checked = localStorage.getItem(remembered) !== "off";
control.addEventListener("change", () => {
  localStorage.setItem(remembered, control.checked ? "on" : "off");
});

let pressed = false;
document.addEventListener("keydown", (event) => {
  if (!control.checked || event.ctrlKey || event.metaKey || event.altKey || event.repeat) return;
  const typing = event.target.closest("input:not([type=checkbox]), select, textarea");
  if (typing) return;
  const target = document.querySelector(`[data-key="${CSS.escape(event.key)}"]`);
  if (!target) return;
  event.preventDefault();
  if (event.key === "?") {
    help.open = !help.open;
    target.focus();
    return;
  }
  // One decision a page: a second press while the next one loads would be about something nobody saw.
  if (pressed) return;
  if (target.form && !target.form.reportValidity()) return;
  pressed = true;
  target.click();
});
addEventListener("pageshow", () => { pressed = false; });
