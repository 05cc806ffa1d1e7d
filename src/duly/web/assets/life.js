// Life: a page that is open hears that the ledger has changed, and reads itself again. A chip says whether what is shown is live,
// paused or stale; pressing it pauses. A tab that nobody sees is paused by itself.
//
// The server's stream says the ledger's stamp. The page has the one that it was read after: where they differ it is read again,
// and made to be what it has become, so that focus, selection and what was typed stay where they are.
"use strict";
(() => {
  const place = document.querySelector(".life");
  if (!place || !window.EventSource || !window.htmx) return; // the link to reload stays
  const SILENCE = 40_000; // the server says something every 15 s
  const LEAST = 1_500; // between two readings, or ten times as long as one takes
  const MINUTE = 60_000; // time alone makes windows late
  const POLL = 15_000; // where no stream is to be had
  const GRACE = 3_000; // a stream that is cut is most often there again at once

  const chip = document.createElement("button");
  chip.type = "button";
  chip.className = "chip-life";
  const aloud = document.createElement("span");
  aloud.className = "vh";
  aloud.setAttribute("role", "status");
  place.replaceChildren(chip, aloud);

  const signs = { live: "●", paused: "❚❚", stale: "△" };
  const clock = new Intl.DateTimeFormat("en-GB", { hour: "2-digit", minute: "2-digit", second: "2-digit" });
  let shown = "";
  const show = (word, why) => {
    chip.title = why;
    if (word === shown) return;
    const sign = document.createElement("span");
    sign.setAttribute("aria-hidden", "true");
    sign.textContent = signs[word];
    chip.replaceChildren(sign, ` ${word}`);
    chip.dataset.is = word;
    chip.setAttribute("aria-label", word === "paused" ? "paused; show changes again" : `${word}; pause`);
    aloud.textContent = word === "stale" ? `The page is stale: ${why}.` : shown === "stale" ? `The page is ${word} again.` : "";
    shown = word;
  };

  // -- what is remembered of this tab: whether somebody paused it ----------------------------------------------------

  const kept = (() => {
    try { return window.sessionStorage; } catch { return null; }
  })();
  let byHand = kept?.getItem("duly-paused") === "yes";
  const isPaused = () => byHand || document.hidden;

  // -- reading the page again ----------------------------------------------------------------------------------------

  let readAt = Date.now(), took = 0, isReading = false, wanted = null;
  const timers = {};
  const never = (name) => {
    clearTimeout(timers[name]);
    delete timers[name];
  };
  const later = (name, wait, what) => {
    never(name);
    timers[name] = setTimeout(() => { delete timers[name]; what(); }, wait);
  };
  const stampOf = () => document.getElementById("main").dataset.stamp;

  const read = async () => {
    if (isPaused()) return;
    if (isReading) { wanted = true; return; }
    isReading = true;
    wanted = false;
    const began = Date.now(), at = location.href;
    try {
      const answer = await fetch(at, { cache: "no-store", signal: AbortSignal.timeout(30_000) });
      const text = await answer.text();
      took = Date.now() - began;
      if (!answer.ok) {
        stale(`the server answers ${answer.status}`);
      } else if (at !== location.href) {
        wanted = true; // somebody has gone on meanwhile
      } else if (!isPaused()) {
        await become(text);
        readAt = Date.now();
        live();
      }
    } catch (error) {
      if (!(error instanceof TypeError || error.name === "TimeoutError" || error.name === "AbortError")) throw error;
      stale("the server does not answer");
    } finally {
      isReading = false;
      if (wanted) soon();
      else later("read", source ? MINUTE : POLL, read);
    }
  };
  const soon = () => later("read", Math.max(0, readAt + Math.max(LEAST, 10 * took) - Date.now()), read);

  const become = async (text) => {
    const next = new DOMParser().parseFromString(text, "text/html");
    const style = (from) => from.querySelector('link[rel="stylesheet"]')?.getAttribute("href");
    if (style(next) !== style(document) || next.getElementById("main")?.dataset.stamp === undefined) {
      location.reload(); // another release of duly answers
      return;
    }
    await htmx.swap({ sourceElement: document.body, target: document.body, text, select: "body", swap: "innerMorph" });
  };

  // -- hearing -------------------------------------------------------------------------------------------------------

  let source = null; // a stream that is open, or being opened
  const hear = () => {
    if (isPaused() || source) return;
    source = new EventSource(place.dataset.path);
    source.onmessage = (event) => {
      later("silence", SILENCE, deaf);
      never("grace");
      if (event.data === stampOf()) live();
      else soon();
    };
    source.onerror = () => {
      if (source.readyState === EventSource.CLOSED) return deaf(); // it is refused, and not asked for again by itself
      if (!("grace" in timers)) later("grace", GRACE, deaf); // it is tried again meanwhile, and fails each time
    };
    later("silence", SILENCE, deaf);
  };
  const deaf = () => {
    hush();
    later("hear", POLL / 3, hear);
    soon(); // is anybody there?
  };
  const hush = () => {
    source?.close();
    source = null;
    never("silence");
    never("grace");
  };

  const live = () => show("live", source ? "changes are shown as they happen; press to pause" : "looked at again every 15 s; press to pause");
  const stale = (why) => show("stale", `${why}; this is what was so at ${clock.format(readAt)}`);

  // -- pausing -------------------------------------------------------------------------------------------------------

  const turn = () => {
    if (isPaused()) {
      hush();
      for (const name in timers) never(name);
      show("paused", `this is what was so at ${clock.format(readAt)}; press to show changes again`);
    } else if (shown === "paused" || !shown) {
      live();
      hear();
      later("read", Math.max(0, readAt + MINUTE - Date.now()), read);
    }
  };
  chip.addEventListener("click", () => {
    byHand = !byHand;
    try { kept?.setItem("duly-paused", byHand ? "yes" : ""); } catch { /* then it is forgotten with the page */ }
    turn();
  });
  document.addEventListener("visibilitychange", turn);
  addEventListener("pagehide", hush);
  addEventListener("pageshow", (event) => { if (event.persisted) { shown = ""; turn(); } });
  turn();
})();
