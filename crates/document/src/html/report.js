"use strict";
(() => {
  const root = document.documentElement;
  const button = document.getElementById("scheme");
  const dark = () => root.dataset.scheme
    ? root.dataset.scheme === "dark"
    : matchMedia("(prefers-color-scheme: dark)").matches;
  button.hidden = false;
  button.addEventListener("click", () => { root.dataset.scheme = dark() ? "light" : "dark"; });

  const open = (target) => {
    for (let at = target; at; at = at.parentElement) if (at.tagName === "DETAILS") at.open = true;
    const inside = target && target.querySelector(":scope > details");
    if (inside) inside.open = true;
  };
  const follow = () => { if (location.hash) open(document.getElementById(location.hash.slice(1))); };
  addEventListener("hashchange", follow);
  follow();
  addEventListener("beforeprint", () => {
    for (const fold of document.querySelectorAll("details")) fold.open = true;
  });
})();
