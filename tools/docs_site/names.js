// Names for readers of screens: the search, and the buttons of each block of code, which the theme adds once it runs.
(() => {
  const name = () => {
    document.querySelectorAll(".md-search[role=dialog]").forEach((one) => one.setAttribute("aria-label", "Search"));
    document.querySelectorAll(".md-code__nav").forEach((one, number) => one.setAttribute("aria-label", `Code ${number + 1}`));
    document.querySelectorAll(".md-code__button:not([aria-label])").forEach((one) => one.setAttribute("aria-label", one.title));
    document.querySelectorAll(".highlight pre, .md-typeset__scrollwrap").forEach((one) => (one.tabIndex = 0));
  };
  new MutationObserver(name).observe(document.documentElement, { childList: true, subtree: true });
  document.addEventListener("DOMContentLoaded", name);
})();
