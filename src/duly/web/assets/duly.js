// What a script adds to pages that work without one: arrow keys in the grid, its reading line, a range that is selected in it, and
// buttons to copy a line to type.
"use strict";
(() => {
  const stateOf = (td) => {
    for (const name of td.classList) if (name.startsWith("s-")) return name.slice(2).replace("-", " ");
    return "";
  };

  // -- the grid: one tab stop, arrow keys within ---------------------------------------------------------------------

  const columnOf = (td) => {
    let place = 0;
    for (let before = td.previousElementSibling; before; before = before.previousElementSibling) {
      if (before.tagName === "TD") place += before.colSpan;
    }
    return place;
  };
  const cellAt = (row, place) => {
    let at = 0;
    for (const td of row.querySelectorAll(":scope > td")) {
      if (place < at + td.colSpan) return td;
      at += td.colSpan;
    }
    return null;
  };
  const headsOf = (td) => {
    const heads = td.closest("table").tHead.rows[1].cells;
    const place = columnOf(td);
    return [heads[place], heads[place + td.colSpan - 1]];
  };

  const nameOf = (head) => head.title.split(": ")[0];

  const told = (td) => {
    const row = td.parentElement;
    const name = row.cells[0].querySelector("a").textContent;
    if (td.tagName === "TH") return `${name}: Enter opens the job`;
    const [first, last] = headsOf(td);
    const when = first === last ? first.title : `${first.title} to ${last.title}`;
    const word = stateOf(td);
    if (!word) return `${name}, ${when}: nothing comes due`;
    const said = { "not owed": "not recorded", pruned: "not recorded any more" }[word] || word;
    const link = td.querySelector("a");
    const many = td.dataset.n && !said.startsWith("not recorded") ? `, ${td.dataset.d} of ${td.dataset.n} complete` : "";
    return `${name}, ${when}: ${link ? link.title : said + many}`;
  };

  // -- a range of a row that is selected: remembered by its times, for the page may be read again and have moved on ------

  let range = null; // { row, job, scope, from, to } and where it began: { from, to } of one cell
  const spanOf = (td) => {
    const [first, last] = headsOf(td);
    return { from: first.dataset.from, to: last.dataset.to };
  };
  const paint = () => {
    for (const td of document.querySelectorAll("table.grid td[data-in]")) delete td.dataset.in;
    const row = range && document.getElementById(range.row);
    if (!row) return false;
    for (const td of row.querySelectorAll(":scope > td")) {
      const { from, to } = spanOf(td);
      if (from >= range.from && to <= range.to) td.dataset.in = "";
    }
    return true;
  };
  const select = (td) => {
    const row = td.parentElement, span = spanOf(td);
    const began = range?.row === row.id ? range.began : spanOf(row.querySelector(":scope > td[tabindex='0']") || td);
    const from = span.from < began.from ? span.from : began.from, to = span.to > began.to ? span.to : began.to;
    range = { row: row.id, began, from, to };
    paint();
    tellRange();
  };
  const unselect = () => {
    if (!range) return;
    range = null;
    paint();
  };
  const tellRange = () => {
    const row = document.getElementById(range.row), cells = row.querySelectorAll("td[data-in]");
    const line = row.cells[0].querySelector("a"), asked = new URL(line.href).searchParams;
    const first = headsOf(cells[0])[0], last = headsOf(cells[cells.length - 1])[1];
    const to = new URL(document.querySelector("form.backfill").action);
    to.searchParams.set("job", row.dataset.job);
    if (asked.get("scope")) to.searchParams.set("scope", asked.get("scope"));
    to.searchParams.set("range", `${range.from}..${range.to}`);
    const link = document.createElement("a");
    link.href = to.href;
    link.textContent = "Backfill these";
    const when = first === last ? nameOf(first) : `${nameOf(first)} to ${nameOf(last)}`;
    document.querySelector(".readout").replaceChildren(`${line.textContent}, ${when} selected. `, link);
  };

  const stops = (table) => table.querySelectorAll("tbody [tabindex='0']");
  const CELL = "table.grid tbody td, table.grid tbody th"; // the name of a line is walked to, too
  const goTo = (td) => {
    for (const old of stops(td.closest("table"))) old.tabIndex = -1;
    td.tabIndex = 0;
    td.focus({ preventScroll: false });
    td.scrollIntoView({ block: "nearest", inline: "nearest" });
  };
  const whereOf = (td) => {
    const link = td.querySelector("a");
    if (link) return link.href;
    if (!stateOf(td)) return null;
    const [first, last] = headsOf(td);
    const to = new URL(td.parentElement.cells[0].querySelector("a").href);
    to.searchParams.set("since", first.dataset.from);
    to.searchParams.set("until", last.dataset.to);
    return to.href;
  };

  const prepare = () => {
    for (const table of document.querySelectorAll("table.grid")) {
      for (const link of table.querySelectorAll("tbody a:not([tabindex])")) link.tabIndex = -1;
      if ("ready" in table.dataset && stops(table).length) continue; // it was read again, and has kept its place
      const isNew = !("ready" in table.dataset);
      table.dataset.ready = "";
      const start = table.querySelector("tbody td.present") || table.querySelector("tbody td");
      if (start) start.tabIndex = 0;
      if (!isNew) continue;
      const scroller = table.closest(".scroller");
      scroller.removeAttribute("tabindex");
      const readout = document.querySelector(".readout");
      readout.hidden = false;
      readout.textContent = "Arrow keys move through the grid, Enter opens a cell, Shift selects a range of a line.";
      const present = table.querySelector("thead .present");
      if (present) scroller.scrollLeft = Math.max(0, present.offsetLeft - scroller.clientWidth + 160);
    }
    if (range && paint()) tellRange();
    document.documentElement.classList.toggle("copies", Boolean(navigator.clipboard));
  };

  let goal = null; // the column that somebody walks along, up and down, also through cells that are longer
  const steps = { ArrowLeft: [0, -1], ArrowRight: [0, 1], ArrowUp: [-1, 0], ArrowDown: [1, 0] };
  document.addEventListener("keydown", (event) => {
    const td = event.target.closest?.(CELL);
    if (!td || event.ctrlKey || event.metaKey || event.altKey) return;
    const row = td.parentElement;
    let next = null;
    if (!steps[event.key]?.[0]) goal = null;
    if (event.key in steps) {
      const [down, right] = steps[event.key];
      next = right ? (right > 0 ? td.nextElementSibling : td.previousElementSibling) : null;
      if (down) {
        goal ??= columnOf(td);
        const other = down > 0 ? row.nextElementSibling : row.previousElementSibling;
        next = other && (td.tagName === "TH" ? other.cells[0] : cellAt(other, goal));
      }
    } else if (event.key === "Home") {
      next = row.querySelector("td");
    } else if (event.key === "End") {
      next = row.lastElementChild;
    } else if (event.key === "Enter") {
      const to = whereOf(td);
      if (to) location.assign(to);
    } else if (event.key === "Escape") {
      unselect();
      read(event);
    } else {
      return;
    }
    event.preventDefault();
    const selects = event.shiftKey && td.tagName === "TD" && (event.key === "Home" || event.key === "End" || steps[event.key]?.[1]);
    if (!selects && next) unselect();
    if (!next || (selects && next.tagName !== "TD")) return;
    if (selects && range?.row !== row.id) select(td); // from where the focus is, before it moves
    goTo(next);
    if (selects) select(next);
  });

  const read = (event) => {
    const td = event.target.closest?.(CELL);
    if (td && !("in" in td.dataset)) document.querySelector(".readout").textContent = told(td);
  };
  document.addEventListener("focusin", read);
  document.addEventListener("pointerover", (event) => {
    const readout = event.target.closest?.("table.grid td") && document.querySelector(".readout");
    if (!readout) return;
    if (drag(event) || range) return; // what is selected is not talked over
    readout.setAttribute("aria-live", "off"); // a pointer that passes over is no reason to speak
    read(event);
    readout.setAttribute("aria-live", "polite");
  });

  // With a pointer: press on one cell and let go on another of its line, or hold Shift for the second.
  let pressed = null, isDragged = false;
  const drag = (event) => {
    const td = event.target.closest?.("table.grid td");
    if (!pressed || !(event.buttons & 1) || td.parentElement !== pressed.parentElement || (td === pressed && !isDragged)) return false;
    if (!isDragged) {
      unselect();
      goTo(pressed);
      select(pressed);
    }
    isDragged = true;
    select(td);
    return true;
  };
  document.addEventListener("pointerdown", (event) => {
    isDragged = false;
    goal = null;
    pressed = event.pointerType === "mouse" && event.button === 0 && !event.shiftKey ? event.target.closest?.("table.grid td") : null;
  });
  document.addEventListener("pointerup", () => { pressed = null; });
  document.addEventListener("dragstart", (event) => { if (event.target.closest?.("table.grid td")) event.preventDefault(); });

  document.addEventListener("click", async (event) => {
    const td = event.target.closest?.("table.grid td");
    if (td && (event.shiftKey || isDragged)) {
      event.preventDefault();
      if (!isDragged) {
        if (!range && stops(td.parentElement).length === 0) goTo(td);
        select(td);
      }
      isDragged = false;
      return;
    }
    if (td) unselect();
    if (td && !event.target.closest("a")) {
      const to = whereOf(td);
      if (to) location.assign(to);
      return;
    }
    const button = event.target.closest?.("button.copy");
    if (!button) return;
    await navigator.clipboard.writeText(button.parentElement.querySelector("code").textContent);
    button.textContent = "copied";
    setTimeout(() => { button.textContent = "copy"; }, 1500);
  });

  // A field that says nothing need not stand in the URL.
  document.addEventListener("formdata", (event) => {
    for (const [name, value] of [...event.formData]) if (value === "") event.formData.delete(name);
  });

  document.addEventListener("htmx:after:swap", prepare);
  document.addEventListener("htmx:after:settle", prepare);
  document.addEventListener("DOMContentLoaded", prepare);
  if (document.readyState !== "loading") prepare();
})();
