"use strict";
// Brings the numbers of the page up to date every five seconds, and says in one line what changed.
const told = document.querySelector("[data-progress]");

async function look() {
  if (document.hidden) return;
  let answer;
  try {
    const response = await fetch(told.dataset.progress, { headers: { Accept: "application/json" } });
    if (!response.ok) throw new Error(String(response.status));
    answer = await response.json();
  } catch {
    told.textContent = "The numbers cannot be read now. Reload the page.";
    return;
  }
  let changed = false;
  for (const one of answer.generations) {
    const place = [...document.querySelectorAll("[data-generation]")].find((it) => it.dataset.generation === one.reference);
    if (!place) continue;
    for (const shown of place.querySelectorAll("[data-count]")) {
      const name = shown.dataset.count;
      const now = String(name === "promoted" ? one.promoted : one.states[name]);
      if (shown.textContent !== now) { shown.textContent = now; changed = true; }
    }
    const pace = place.querySelector("[data-pace]");
    if (pace) pace.textContent = one.pace;
    const bar = place.querySelector("progress");
    bar.max = one.promoted || 1;
    bar.value = one.states.complete;
  }
  const line = answer.generations.map((one) => `${one.reference}: ${one.states.complete} of ${one.promoted} complete`).join(". ");
  // Said only when there is something to say: a reader is not told the same every five seconds.
  if (changed || !told.dataset.live) told.textContent = `${line}. The numbers keep themselves up to date.`;
  told.dataset.live = "yes";
}

if (told) { look(); setInterval(look, 5000); }
