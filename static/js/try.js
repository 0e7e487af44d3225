// The form that calls the Bot API with the reader's own token. The token goes
// into one header of one request to this origin and nowhere else: not into an
// address, not into storage, not into a form that is sent.
"use strict";

(() => {
  const form = document.getElementById("try");
  if (!form) return;
  const [method, note, token, keyField, key, body, send, waiting, answer, status] = ["try-method", "try-note", "try-token", "try-key-field", "try-key",
    "try-body", "try-send", "try-waiting", "try-answer", "try-status"].map((id) => document.getElementById(id));
  const [headersShown, bodyShown] = answer.querySelectorAll("[data-copy-text]");

  const newKey = () => "docs-" + [...crypto.getRandomValues(new Uint8Array(12))].map((b) => b.toString(16).padStart(2, "0")).join("");

  const choose = () => {
    const chosen = method.selectedOptions[0];
    body.value = chosen.dataset.body;
    note.textContent = chosen.dataset.note;
    note.hidden = chosen.dataset.note === "";
    keyField.hidden = !("keyed" in chosen.dataset);
    key.value = newKey();
  };

  const show = (line, headers, text) => {
    status.textContent = line;
    headersShown.textContent = headers;
    bodyShown.textContent = text;
    answer.querySelectorAll("figure").forEach((f) => { f.hidden = headers === "" && text === ""; });
    answer.hidden = false;
    answer.focus();
  };

  // The text as it came, over several lines where that changes nothing: all
  // numbers that matter are strings.
  const pretty = (text) => {
    try { return JSON.stringify(JSON.parse(text), null, 2); } catch { return text; }
  };

  form.addEventListener("submit", async (event) => {
    event.preventDefault();
    // A header takes ASCII alone; what the browser would say to anything else names the value.
    if (!/^[!-~]+$/.test(token.value.trim())) {
      show(form.dataset.badToken, "", "");
      token.focus();
      return;
    }
    const headers = { "Authorization": "Bearer " + token.value.trim(), "Content-Type": "application/json" };
    if (!keyField.hidden && /^[!-~]+$/.test(key.value)) headers["Idempotency-Key"] = key.value;
    send.disabled = true;
    waiting.hidden = false;
    const began = performance.now();
    try {
      const response = await fetch(form.dataset.prefix + method.value, {
        method: "POST", headers, body: body.value, credentials: "omit", cache: "no-store", redirect: "error", referrerPolicy: "no-referrer",
      });
      const text = await response.text();
      const took = Math.round(performance.now() - began);
      show(`${response.status} ${response.statusText} · ${took} ms`, [...response.headers].map(([name, value]) => `${name}: ${value}`).join("\n"), pretty(text));
    } catch {
      show(form.dataset.lost, "", "");
    }
    send.disabled = false;
    waiting.hidden = true;
  });

  method.addEventListener("change", choose);
  // Neither going back nor reloading brings the token back.
  addEventListener("pagehide", () => { token.value = ""; });
  token.value = "";
  choose();
})();
