"use strict";
for (const table of document.querySelectorAll("table.forest")) {
  const body = table.tBodies[0];
  const box = table.closest("[data-forest]");
  const more = box.querySelector("[data-more]");
  const search = box.querySelector("input");
  const shown = Number(table.dataset.shown);

  function fold() {
    const all = more.getAttribute("aria-expanded") === "true";
    const wanted = search.value.trim().toLowerCase();
    let place = 0;
    for (const row of body.rows) {
      const match = row.cells[0].textContent.toLowerCase().includes(wanted);
      row.hidden = !match;
      row.classList.toggle("more", match && place >= shown);
      place += match ? 1 : 0;
    }
    table.classList.toggle("short", !all);
    more.hidden = place <= shown;
    more.textContent = all ? "Show the largest only" : "Show all " + place;
  }

  table.tHead.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    const head = button.closest("th");
    const key = button.dataset.key;
    const down = head.getAttribute("aria-sort") !== "descending";
    for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
    head.setAttribute("aria-sort", down ? "descending" : "ascending");
    const sign = down ? -1 : 1;
    const rows = Array.from(body.rows).sort((a, b) => {
      const x = a.dataset[key], y = b.dataset[key];
      return sign * (key === "name" ? -x.localeCompare(y) : Number(x) - Number(y));
    });
    body.append(...rows);
    fold();
  });
  more.addEventListener("click", () => {
    more.setAttribute("aria-expanded", String(more.getAttribute("aria-expanded") !== "true"));
    fold();
  });
  search.addEventListener("input", fold);
  box.querySelector(".bar").hidden = false;
  fold();
}
