// What the pages do beyond plain HTML. Everything here is found by data
// attributes, works on pieces that htmx brings, and every page works without it.
"use strict";

(() => {
  const lang = document.documentElement.lang || "en";

  // --- Times: the reader's zone or UTC, as they chose, relative first, exact UTC on hover (UI-05).
  const timeZone = document.documentElement.dataset.zone === "utc" ? "UTC" : undefined; // undefined: the browser's
  const relative = new Intl.RelativeTimeFormat(lang, { numeric: "auto", style: "long" });
  const clockTime = { hour: "2-digit", minute: "2-digit", hourCycle: "h23", timeZoneName: "short", timeZone };
  const near = new Intl.DateTimeFormat(lang, { ...clockTime, second: "2-digit" });
  const far = new Intl.DateTimeFormat(lang, { ...clockTime, day: "numeric", month: "short", year: "numeric" });
  const date = new Intl.DateTimeFormat("en", { dateStyle: "short", timeZone });
  const day = 86400;

  const ago = (seconds) => {
    const size = Math.abs(seconds);
    if (size < 60) return relative.format(Math.trunc(seconds), "second");
    if (size < 3600) return relative.format(Math.trunc(seconds / 60), "minute");
    if (size < day) return relative.format(Math.trunc(seconds / 3600), "hour");
    return relative.format(Math.trunc(seconds / day), "day");
  };

  const showTime = (element) => {
    const at = new Date(element.dateTime);
    if (Number.isNaN(at.getTime())) return;
    const now = new Date();
    let seconds = (at - now) / 1000;
    if (element.closest("[data-countdown]")) seconds = Math.max(seconds, 0); // it happens any moment
    const sameDay = date.format(at) === date.format(now);
    const exact = (sameDay ? near : far).format(at);
    if (Math.abs(seconds) >= 7 * day) {
      element.textContent = exact;
      return;
    }
    let place = element.querySelector(".at");
    if (!place) {
      const first = document.createElement("span");
      first.className = "ago";
      place = document.createElement("span");
      place.className = "at";
      element.replaceChildren(first, " ", place);
    }
    element.firstChild.textContent = ago(seconds);
    place.textContent = exact;
  };

  const showTimes = (root) => root.querySelectorAll("time[data-time]").forEach(showTime);

  // --- Copying, also of what is covered, also on plain http.
  const say = (button, text) => {
    const word = button.querySelector("[data-word]");
    const was = button.dataset.was ?? (word ? word.textContent : button.title);
    button.dataset.was = was;
    if (word) word.textContent = text;
    button.title = text;
    status(text);
    clearTimeout(button.timer);
    button.timer = setTimeout(() => {
      if (word) word.textContent = was;
      button.title = was;
    }, 4000);
  };

  // A live region of its own, so that the page's flash stays.
  const status = (text) => {
    let line = document.getElementById("spoken");
    if (!line) {
      line = document.createElement("div");
      line.id = "spoken";
      line.className = "unseen";
      line.setAttribute("role", "status");
      document.querySelector("main").append(line);
    }
    line.textContent = text;
  };

  const select = (source) => {
    if (source.select) {
      source.focus();
      source.select();
      return;
    }
    getSelection().selectAllChildren(source);
  };

  // name gives a button that shows and covers the word for what it does next.
  const name = (button) => {
    const open = document.getElementById(button.dataset.show).classList.contains("open");
    button.querySelector("[data-word]").textContent = open ? button.dataset.hideWord : button.dataset.showWord;
  };

  const copy = async (button) => {
    const source = button.closest(".copyable")?.querySelector("[data-copy-text]");
    if (!source) return;
    try {
      await navigator.clipboard.writeText(source.value ?? source.textContent);
      say(button, button.dataset.copied);
    } catch { // no clipboard outside https and localhost
      // Covered text would be copied as its dots.
      [source, ...source.querySelectorAll("[data-secret]")].forEach((s) => s.classList.add("open"));
      document.querySelectorAll(`[data-show="${source.id}"]`).forEach(name);
      select(source);
      say(button, button.dataset.byHand);
    }
  };

  // --- Covering and showing secrets.
  const cover = (button) => {
    document.getElementById(button.dataset.show).classList.toggle("open");
    name(button);
  };

  document.addEventListener("click", (event) => {
    const button = event.target.closest("button");
    if (!button) return;
    if (button.hasAttribute("data-copy")) copy(button);
    if (button.dataset.show) cover(button);
  });

  // A secret leaves the page with its reader: going back doesn't show it again.
  addEventListener("pagehide", () => {
    document.querySelectorAll("[data-secret]").forEach((s) => s.remove());
  });

  // --- Check boxes: one in the head ticks all of its form, Shift ticks a range.
  let lastTicked;
  document.addEventListener("click", (event) => {
    const box = event.target;
    if (!(box instanceof HTMLInputElement) || box.type !== "checkbox") return;
    const rows = [...(box.form?.querySelectorAll("input[data-row]") ?? [])];
    if (box.hasAttribute("data-all")) {
      rows.forEach((row) => { row.checked = box.checked; });
    } else if (box.hasAttribute("data-row")) {
      if (event.shiftKey && lastTicked && rows.includes(lastTicked)) {
        const [from, to] = [rows.indexOf(lastTicked), rows.indexOf(box)].sort((a, b) => a - b);
        rows.slice(from, to + 1).forEach((row) => { row.checked = box.checked; });
      }
      lastTicked = box;
    } else {
      return;
    }
    box.form.dispatchEvent(new CustomEvent("ticked", { bubbles: true }));
  });

  // --- Pieces and pages alike.
  const look = () => {
    showTimes(document);
    const wanted = document.querySelector("[data-focus]");
    if (!wanted) return;
    wanted.removeAttribute("data-focus"); // once
    wanted.focus();
  };
  look();
  document.addEventListener("htmx:after:swap", look);
  setInterval(() => { if (!document.hidden) showTimes(document); }, 30000);
  setInterval(() => { if (!document.hidden) document.querySelectorAll("[data-countdown]").forEach(showTimes); }, 1000);

  // --- No answer at all to what htmx sent: say so where deeds are told.
  document.addEventListener("htmx:error", () => {
    const flash = document.getElementById("flash");
    if (!flash) return;
    const note = document.createElement("div");
    note.className = "note trouble";
    note.textContent = flash.dataset.unanswered;
    flash.replaceChildren(note);
  });
})();
