"use strict";
// Light or dark: as the system has it, until somebody chooses.
(() => {
  const root = document.documentElement, button = document.getElementById("theme");
  const system = window.matchMedia("(prefers-color-scheme: dark)");
  let chosen = null;
  try { chosen = localStorage.getItem("eigenscape-theme"); } catch { /* files may have no storage */ }
  function show() {
    const dark = chosen ? chosen === "dark" : system.matches;
    root.dataset.theme = dark ? "dark" : "light";
    button.textContent = dark ? "Light" : "Dark";
    button.setAttribute("aria-label", dark ? "Switch to light colours" : "Switch to dark colours");
    button.removeAttribute("aria-pressed");
    window.dispatchEvent(new Event("eigenscape-theme"));
  }
  button.addEventListener("click", () => {
    chosen = root.dataset.theme === "dark" ? "light" : "dark";
    try { localStorage.setItem("eigenscape-theme", chosen); } catch { /* as above */ }
    show();
  });
  system.addEventListener("change", show);
  show();
})();
