"use strict";

// Shows the page in the colours that the reader chose; without a choice, or without this script, in the system's.
document.getElementById("colours").addEventListener("change", ({ target }) => {
  if (target.value === "system") delete document.documentElement.dataset.theme;
  else document.documentElement.dataset.theme = target.value;
});
