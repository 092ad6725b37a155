"use strict";
// Keeps the page equal to what a reload would show, and makes writing pleasant. Everything works without it, too.
(() => {
  const $ = (id) => document.getElementById(id);
  const log = $("log"), composer = $("composer"), text = $("text"), press = $("press"), command = $("command");

  // -- times in the reader's own zone ----------------------------------------------------------------
  const clock = new Intl.DateTimeFormat(undefined, { hour: "2-digit", minute: "2-digit" });
  const dated = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  function localise(root) {
    for (const each of root.querySelectorAll("time[datetime]")) {
      const at = new Date(each.dateTime);
      const today = at.toDateString() === new Date().toDateString();
      each.textContent = (today ? clock : dated).format(at);
      each.title = dated.format(at);
    }
  }
  localise(document);

  const fold = $("fold");
  if (fold) {
    document.addEventListener("click", (event) => {
      if (fold.open && !event.target.closest("nav")) fold.open = false;
    });
    document.addEventListener("keydown", (event) => {
      if (event.key === "Escape") fold.open = false;
    });
  }

  // -- sending: a message waits here until it is stored, also over a reload ----------------------------
  const KEPT = `legato-unsent ${document.querySelector(".brand .person")?.textContent}`;  // another may log in here
  const unsent = [];  // {id, text, files}
  let sending = false, pause = 500;

  function newId() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (each) => each.toString(16).padStart(2, "0")).join("");
  }
  function keep() {
    const texts = unsent.filter((each) => !each.files.length).map(({ id, text }) => ({ id, text }));
    try { sessionStorage.setItem(KEPT, JSON.stringify(texts)); } catch { /* private mode: only a reload loses it */ }
    if ($("problem")) showWaiting();
  }
  function say(words, files = []) {
    unsent.push({ id: newId(), text: words, files });
    keep();
    sendNext();
  }
  async function post(form, fields, files = []) {
    let body = new URLSearchParams({ csrf: form.elements.csrf.value, ...fields });  // read with less work than parts
    if (files.length || `${body}`.length > 200000) {
      const parts = new FormData();
      for (const [name, value] of body) parts.set(name, value);
      for (const file of files) parts.append("file", file, file.name);
      body = parts;
    }
    return fetch(form.getAttribute("action"), { method: "POST", body, headers: { Accept: "application/json" } });
  }
  async function sendNext() {
    if (sending || !unsent.length) return;
    sending = true;
    const first = unsent[0];
    let again = false;
    try {
      const response = await post(command, { id: first.id, text: first.text }, first.files);
      const answer = (response.headers.get("Content-Type") || "").includes("json") ? await response.json() : {};
      if (response.status === 401) return void location.reload();
      again = response.status >= 500;
      if (!again) {
        unsent.shift();
        problem(response.ok ? "" : answer.problem || "The message was not taken: load the page again.");
        if (!response.ok && text) { text.value = [first.text, text.value].filter(Boolean).join("\n"); grow(); }
      } else problem(answer.problem || "");
    } catch {
      again = true;  // nobody knows whether it arrived: the same id is taken once
    } finally {
      sending = false;
      keep();
    }
    if (again) {
      setTimeout(sendNext, pause);
      pause = Math.min(15000, pause * 2);
    } else {
      pause = 500;
      sendNext();
    }
  }
  function problem(words) {
    const place = $("problem");
    if (!place) return;
    place.textContent = words;
    place.hidden = !words;
  }
  function showWaiting() {
    let list = $("unsent");
    if (!list) {
      list = document.createElement("ul");
      list.id = "unsent";
      $("problem").before(list);
    }
    list.replaceChildren(...unsent.map((each) => {
      const item = document.createElement("li");
      item.textContent = each.text || each.files.map((file) => file.name).join(", ");
      item.dir = "auto";
      return item;
    }));
    list.hidden = !unsent.length;
  }
  window.addEventListener("online", () => { pause = 500; sendNext(); });

  // Buttons with commands work on every page; elsewhere than in the chat, the page is loaded again.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[form]");
    if (!button || !log || (button.getAttribute("form") !== "command" && button.getAttribute("form") !== "press")) return;
    event.preventDefault();
    if (button.getAttribute("form") === "command") return say(button.value);
    button.disabled = true;
    post(press, { token: button.value })
      .then(async (response) => {
        if (response.status === 401) return location.reload();
        problem((await response.json()).problem || "");
        button.disabled = response.ok;
      })
      .catch(() => { button.disabled = false; });
  });
  if (!log) return;

  // -- the log ------------------------------------------------------------------------------------------
  const atEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 120;
  const toEnd = () => scrollTo(0, document.documentElement.scrollHeight);
  toEnd();

  function put({ id, place, html }) {
    const follow = atEnd();
    let item = $("e-" + id);
    if (!item) {
      item = document.createElement("li");
      item.id = "e-" + id;
    }
    item.dataset.place = place;
    item.innerHTML = html;  // made by the server, where every text is escaped; the page's policy runs no script of it
    localise(item);
    let next = null;
    for (let each = log.lastElementChild; each; each = each.previousElementSibling) {
      if (each === item) continue;
      if (each.dataset.place <= place) break;
      next = each;
    }
    if (next !== item.nextElementSibling || item.parentElement !== log) log.insertBefore(item, next);
    if (follow) toEnd();
  }
  function work(words) {
    const follow = atEnd();
    $("work").textContent = words;
    $("working").hidden = !words;
    if (follow) toEnd();
  }
  // A browser keeps six connections to one address: a tab that nobody sees gives its own back.
  let source = null;
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) return stream();
    source?.close();
    source = null;
  });
  function stream() {
    if (source || document.hidden) return;
    const address = `/events?n=${log.dataset.most}&last=${encodeURIComponent(log.dataset.digest)}`;
    source = new EventSource(address);
    const on = (kind, act) => source.addEventListener(kind, (event) => {
      act(JSON.parse(event.data));
      log.dataset.digest = event.lastEventId;
    });
    on("entry", put);
    on("draft", put);
    on("gone", (id) => $("e-" + id)?.remove());
    on("keep", (ids) => {
      const kept = new Set(ids.map((id) => "e-" + id));
      for (const item of [...log.children]) if (!kept.has(item.id)) item.remove();
    });
    on("drafts", (ids) => {
      for (const item of [...log.children]) if (item.dataset.place === "~" && !ids.includes(item.id.slice(2))) item.remove();
    });
    on("work", work);
    on("side", (html) => {
      $("side").innerHTML = html;
      localise($("side"));
    });
    source.onopen = () => document.body.classList.remove("away");
    source.onerror = () => {
      document.body.classList.add("away");
      if (source?.readyState !== EventSource.CLOSED) return;  // the browser tries again by itself
      source = null;
      setTimeout(async () => {
        const answer = await fetch("/", { method: "HEAD" }).catch(() => null);
        if (answer?.headers.get("X-Login")) location.reload();
        else stream();
      }, 2000);
    };
  }
  stream();

  // -- writing ------------------------------------------------------------------------------------------
  if (!composer) return;
  const files = $("file"), chosen = $("chosen"), menu = $("commands");
  let picked = [];

  function grow() {
    text.style.height = "auto";
    text.style.height = `${Math.min(text.scrollHeight, innerHeight / 3)}px`;
  }
  function pick(more) {
    picked = [...picked, ...more];
    chosen.replaceChildren(...picked.map((file, at) => {
      const item = document.createElement("li");
      const remove = document.createElement("button");
      remove.type = "button";
      remove.textContent = "×";
      remove.setAttribute("aria-label", `Remove ${file.name}`);
      remove.onclick = () => { picked.splice(at, 1); pick([]); };
      item.append(file.name, remove);
      return item;
    }));
  }
  files.addEventListener("change", () => { pick(files.files); files.value = ""; });
  document.addEventListener("dragover", (event) => event.preventDefault());
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    if (event.dataTransfer.files.length) pick(event.dataTransfer.files);
  });
  text.addEventListener("paste", (event) => {
    const words = event.clipboardData.getData("text/plain");
    const long = text.value.length + words.length > text.maxLength;  // else the browser would drop the end unsaid
    const pasted = long ? [new File([words], "pasted.txt", { type: "text/plain" })] : event.clipboardData.files;
    if (pasted.length) { event.preventDefault(); pick(pasted); }
  });

  // The last message can be said anew: then the one before is taken back with its answer.
  const hint = $("editing"), edit = $("edit");
  function lastSaid() {
    const words = (said) => said.querySelector(".plain")?.textContent || "";
    return [...log.querySelectorAll(".said")].filter((each) => !words(each).startsWith("/")).at(-1);
  }
  function editing(on) {
    const last = on && lastSaid();
    if (on && !last) return;
    if (last && last.querySelector(".cut, .file")) {
      return problem("This message is long or has files: it is not all here. Take it back with /undo, and send it again.");
    }
    hint.hidden = !on;
    text.value = on ? last.querySelector(".plain").textContent : "";
    grow();
    text.focus();
  }
  edit.hidden = false;
  edit.addEventListener("click", () => editing(hint.hidden));

  composer.addEventListener("submit", (event) => {
    event.preventDefault();
    const words = text.value;
    if (!words.trim() && !picked.length) return;
    const most = Number(files.dataset.most);
    if (picked.reduce((sum, file) => sum + file.size, 0) > most) {
      return problem(`The files of one message may have ${most / 1e6} MB together.`);
    }
    const sent = picked;
    if (!hint.hidden) say("/undo");
    hint.hidden = true;
    text.value = "";
    picked = [];
    pick([]);
    complete();
    grow();
    say(words, sent);
    toEnd();
    text.focus();
  });

  // Completion of commands: the first word, while it is typed.
  const options = [...menu.children];
  let active = -1;
  const visible = () => options.filter((each) => !each.hidden);
  function mark(at) {
    const list = visible();
    active = list.length ? (at + list.length) % list.length : -1;
    options.forEach((each) => each.setAttribute("aria-selected", "false"));
    if (active < 0) return text.removeAttribute("aria-activedescendant");
    list[active].setAttribute("aria-selected", "true");
    list[active].scrollIntoView({ block: "nearest" });
    text.setAttribute("aria-activedescendant", list[active].id);
  }
  function complete() {
    const typed = /^\/([\w-]*)$/.exec(text.value);
    for (const each of options) each.hidden = !typed || !each.dataset.name.startsWith(typed[1].toLowerCase());
    menu.hidden = !visible().length;
    mark(menu.hidden ? -1 : 0);
  }
  function choose(option) {
    text.value = `/${option.dataset.name} `;
    complete();
    text.focus();
  }
  options.forEach((each) => each.addEventListener("mousedown", (event) => { event.preventDefault(); choose(each); }));
  text.addEventListener("input", () => { grow(); complete(); });
  text.addEventListener("keydown", (event) => {
    if (event.isComposing) return;
    if (event.key === "ArrowUp" && !text.value) { event.preventDefault(); return editing(true); }
    if (event.key === "Escape" && !hint.hidden) return editing(false);
    if (!menu.hidden) {
      if (event.key === "ArrowDown" || event.key === "ArrowUp") {
        event.preventDefault();
        return mark(active + (event.key === "ArrowDown" ? 1 : -1));
      }
      const option = visible()[active];
      const whole = option && text.value === `/${option.dataset.name}`;
      if (event.key === "Tab" || (event.key === "Enter" && !event.shiftKey && !whole)) {
        event.preventDefault();
        return choose(option);
      }
      if (event.key === "Escape") { menu.hidden = true; return; }
    }
    if (event.key === "Enter" && !event.shiftKey && !matchMedia("(pointer: coarse)").matches) {
      event.preventDefault();
      composer.requestSubmit();
    }
  });
  grow();
  if (matchMedia("(pointer: fine)").matches) text.focus();
  try {
    for (const each of JSON.parse(sessionStorage.getItem(KEPT) || "[]")) unsent.push({ ...each, files: [] });
  } catch { /* nothing was kept */ }
  keep();
  sendNext();
})();
