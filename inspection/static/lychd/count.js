"use strict";
// The button of a page of tick boxes says how many notes it is about; without script it says "what is ticked".
for (const button of document.querySelectorAll("[data-count]")) {
  const tell = () => {
    const ticked = button.form.querySelectorAll("input[name=note]:checked").length;
    button.textContent = `${button.dataset.count} ${ticked} note${ticked === 1 ? "" : "s"}`;
    button.disabled = ticked === 0;
  };
  button.form.addEventListener("change", tell);
  tell();
}
