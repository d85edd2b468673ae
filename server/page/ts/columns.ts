// The columns of the grid: the address has them, and browsers remember what was chosen last.

import { byId, home } from "./dom";
import { address } from "./filter";

const usual = "next,median";
const form = byId<HTMLFormElement>("columns");
const remembered = localStorage.getItem("columns") ?? usual;

if (home && form) {
  if (remembered !== usual && !new URLSearchParams(location.search).has("columns")) location.replace(address({ columns: remembered }));
  form.addEventListener("change", () => {
    const names = Array.from(form.querySelectorAll<HTMLInputElement>("input:checked"), (box) => box.value).join(",");
    localStorage.setItem("columns", names);
    location.assign(address({ columns: names }));
  });
}

// A link to the grid has them at once.
if (remembered !== usual) {
  const link = document.querySelector<HTMLAnchorElement>("header nav a[href='/']");
  if (link) link.href = "/?" + new URLSearchParams({ columns: remembered });
}
