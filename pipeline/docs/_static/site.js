// What unfolds a part of the navigation is an arrow alone: it gets a name for those who cannot see it.
document.addEventListener("DOMContentLoaded", () => {
  for (const summary of document.querySelectorAll("summary")) {
    if (!summary.textContent.trim()) summary.setAttribute("aria-label", "pages below");
  }
});
