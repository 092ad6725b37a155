"use strict";
// Keeps the page equal to what a reload would show, and makes writing pleasant. Everything works without it, too.
(() => {
  const $ = (id) => document.getElementById(id);
  try { document.body.classList.toggle("narrow", Boolean(localStorage.getItem("legato-narrow"))); } catch { /* private mode */ }
  const live = $("log"), log = live || ($("composer") && document.querySelector(".log")), composer = $("composer"), text = $("text"), press = $("press"), command = $("command");

  // -- times in the reader's own zone ----------------------------------------------------------------
  const clock = new Intl.DateTimeFormat(undefined, { timeStyle: "short" });
  const dated = new Intl.DateTimeFormat(undefined, { dateStyle: "medium", timeStyle: "short" });
  function localise(root) {
    for (const each of root.querySelectorAll("time[datetime]")) {
      const at = new Date(each.dateTime);
      const today = at.toDateString() === new Date().toDateString();
      each.textContent = (today ? clock : dated).format(at);
      each.title = dated.format(at);
    }
  }
  // Sessions stand below the day of their last message, in the reader's own zone.
  function grouped(root) {
    let before = "";
    for (const each of root.querySelectorAll(".sessions > [data-at]")) {
      const days = Math.round((new Date().setHours(0, 0, 0, 0) - new Date(each.dataset.at * 1000).setHours(0, 0, 0, 0)) / 864e5);
      const day = each.dataset.group || (days < 1 ? "Today" : days < 2 ? "Yesterday" : days < 8 ? "Last 7 days" : days < 31 ? "Last 30 days" : "Earlier");
      if (day === before) continue;
      before = day;
      const head = document.createElement("li");
      head.className = "day";
      head.dataset.group = each.dataset.group || "";
      head.textContent = day;
      each.before(head);
    }
  }
  // On a telephone the bar above says which chat this is.
  function titled() {
    const named = live ? document.querySelector(".sessions .present a") : document.querySelector("h1");
    if ($("title")) $("title").textContent = named?.textContent || "Legato";
    if (live) document.title = named ? `${named.textContent} · Legato` : "Legato";
  }
  // A long chat is painted when its end is ready; the rest follows.
  const LATE = 24;
  for (const each of log ? [$("side"), ...[...log.children].slice(-LATE)] : [document]) localise(each);
  grouped(document);
  titled();
  for (const each of document.querySelectorAll(".pages a, .sessions a")) {
    if (each.pathname === location.pathname) each.setAttribute("aria-current", "page");
  }

  // -- what can be done with messages and code ---------------------------------------------------------
  const actions = Object.fromEntries([...($("actions")?.content.children || [])].map((each) => [each.dataset.do, each]));
  const offered = (name) => actions[name].cloneNode(true);
  function dress(root) {
    if (!actions.copy) return;
    for (const error of root.querySelectorAll("article:is(.error:not(.notice), .stopped):not(:has(.retry))")) {
      error.append(Object.assign(offered("again"), { className: "retry", ariaLabel: "Try again", title: "Try again" }));
      error.lastChild.append("Try again");
    }
    for (const pre of root.querySelectorAll(".body pre:not(.math)")) {
      if (pre.closest(".code")) continue;
      const box = document.createElement("div"), head = document.createElement("header");
      const name = document.createElement("span");
      box.className = "code";
      box.dir = "ltr";
      name.textContent = pre.querySelector("code")?.dataset.language || "text";
      const shows = pre.closest(".reply:not(.draft)") && (/^(html|svg)$/.test(name.textContent) || /^\s*<svg\b/.test(pre.textContent));
      head.append(name, ...(shows ? [offered("preview")] : []), offered("wrap"), offered("copy"));
      pre.before(box);
      box.append(head, pre);
    }
    for (const article of root.querySelectorAll("article:is(.reply, .said):not(.draft)")) {
      if (article.querySelector(".acts") || !article.querySelector(".body").textContent.trim()) continue;
      const acts = document.createElement("div");
      acts.className = "acts";
      acts.append(offered("copy"), ...(article.matches(".said") ? ["edit"] : ["again", "fork", "on", ...(window.speechSynthesis ? ["aloud"] : [])]).map(offered));
      article.append(acts);
    }
  }
  function toast(words) {
    let place = $("toast");
    if (!place) {
      place = document.createElement("p");
      place.id = "toast";
      place.setAttribute("role", "status");
      document.body.append(place);
    }
    place.textContent = words;
    place.hidden = false;
    clearTimeout(toast.timer);
    toast.timer = setTimeout(() => { place.hidden = true; }, 2500);
  }
  // A question in a dialog; whether it is answered with yes. Whatever else closes it is a no.
  function ask({ ask: question, yes, no, bad, link }) {
    const box = document.createElement("dialog");
    box.innerHTML = "<p dir=auto></p><input readonly aria-label=Link><form method=dialog class=buttons><button value=yes></button><button autofocus></button></form>";
    box.setAttribute("aria-label", question);
    box.querySelector("p").textContent = question;
    box.querySelector("p").className = yes ? "" : / {2}/.test(question) ? "told columns" : "told";
    box.querySelector("button").hidden = !yes;
    [yes, no].forEach((words, at) => { box.querySelectorAll("button")[at].textContent = words; });
    box.querySelector("button").classList.toggle("bad", Boolean(bad));
    box.querySelector("input").hidden = !link;
    box.querySelector("input").value = link || "";
    document.body.append(box);
    box.showModal();
    return new Promise((answer) => box.addEventListener("close", () => { box.remove(); answer(box.returnValue === "yes"); }));
  }
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[data-do]");
    if (!button) return;
    const code = button.closest(".code");
    if (button.dataset.do === "wrap") code.classList.toggle("wrapped");
    if (button.dataset.do === "preview") return preview(button, code);
    if (button.dataset.do === "aloud") return aloud(button.closest("article").querySelector(".body").innerText);
    if (/^(again|edit|fork|on)$/.test(button.dataset.do)) document.dispatchEvent(new CustomEvent(button.dataset.do, { detail: button.closest("article") }));
    if (button.dataset.do !== "copy") return;
    if (code) return copy(code.querySelector("code").textContent);
    const article = button.closest("article"), shown = article.querySelector(".body").innerText;
    copy(article.matches(".said:not(:has(.cut))") ? shown : written(article).catch(() => shown));
  });
  // The document that is in a block of code, in place of the code.
  function preview(button, code) {
    const on = code.classList.toggle("previewed"), item = code.closest("li");
    button.setAttribute("aria-pressed", on);
    if (!on) return code.querySelector("iframe").remove();
    const frame = document.createElement("iframe"), number = [...item.querySelectorAll(".body pre:not(.math)")].indexOf(code.querySelector("pre"));
    frame.setAttribute("sandbox", "");
    frame.title = "Preview";
    frame.src = `${location.pathname}?text=${encodeURIComponent(item.id)}&block=${number}`;
    code.append(frame);
  }
  function aloud(words) {
    const speaks = speechSynthesis.speaking;
    speechSynthesis.cancel();
    if (!speaks) speechSynthesis.speak(new SpeechSynthesisUtterance(words));
  }
  async function got(address) {
    const answer = await fetch(address);
    if (!answer.ok) throw new Error(answer.statusText);
    return answer;
  }
  // A message as it was written, all of it.
  const written = async (article) => (await got(`${location.pathname}?text=${encodeURIComponent(article.closest("li").id)}`)).text();
  async function copy(words) {
    try {
      const text = Promise.resolve(words).then((each) => new Blob([each], { type: "text/plain" }));
      await navigator.clipboard.write([new ClipboardItem({ "text/plain": text })]);  // at once: some browsers forget the press
      toast("Copied");
    } catch {
      toast("This browser does not let the page copy. Select the text instead.");
    }
  }

  // A link is shown where its button was pressed, and what is deleted asked for.
  document.addEventListener("click", async (event) => {
    const button = event.target.closest("button[form=share][name=session], button:is([form=session], [form=project])[value^='delete ']");
    if (!button) return;
    event.preventDefault();
    const fields = { [button.name]: button.value }, form = button.form, send = async (more) => {
      const response = await post(form, { ...fields, ...more });
      return response.status === 401 ? location.reload() : response.json();
    };
    button.closest("details.menus")?.removeAttribute("open");
    try {
      let answer = await send();
      const asks = answer.ask;
      if (asks && !await ask(answer)) return;
      if (asks) answer = await send({ sure: 1 });
      if (answer.problem) toast(answer.problem);
      if (answer.link && await ask({ ask: "Anyone with this link can read the chat.", yes: "Copy", no: "Close", link: answer.link })) await copy(answer.link);
      if (answer.link && !composer) location.reload();  // the list of links
      if (!asks || answer.problem || answer.link) return;
      toast("Deleted");
      if (!live || button.closest("li.present")) location.assign("/new");
      else document.dispatchEvent(new CustomEvent("begun", { detail: "back" }));  // its rows may be gone, too
    } catch {
      toast("Legato does not answer right now. Try again in a moment.");
    }
  });

  const fold = $("fold");
  if (fold) {
    document.addEventListener("click", (event) => { if (!event.target.closest("nav")) fold.open = false; });
    document.addEventListener("keydown", (event) => { if (event.key === "Escape") fold.open = false; });
  }

  // -- sending: a message waits here until it is stored, also over a reload ----------------------------
  const KEPT = `legato-unsent ${document.querySelector("nav .person")?.textContent}`;  // another may log in here
  const unsent = [];  // {id, text, files}
  let sending = false, pause = 500;

  function newId() {
    const bytes = crypto.getRandomValues(new Uint8Array(16));
    return Array.from(bytes, (each) => each.toString(16).padStart(2, "0")).join("");
  }
  function keep() {
    const texts = unsent.filter((each) => !each.files.length).map(({ files, ...rest }) => rest);
    try { sessionStorage.setItem(KEPT, JSON.stringify(texts)); } catch { /* private mode: only a reload loses it */ }
    if ($("problem")) showWaiting();
  }
  function say(words, files = [], instead = "", menu = "", upto = "") {
    unsent.push({ id: newId(), text: words, files, instead, menu, upto, back: composer?.elements.back?.value || "", chat: command.elements.chat.value });
    keep();
    if (/^\/(new|reset|resume)\b/.test(words)) $("present")?.remove();  // it begins another
    else if (live && !words.startsWith("/") && !document.querySelector(".sessions .present")) listed(words || files[0].name);
    sendNext();
  }
  function listed(words) {  // a new chat, at once
    const list = document.querySelector(".sessions"), item = document.createElement("li");
    item.className = item.id = "present";
    item.dataset.at = Date.now() / 1000;
    item.innerHTML = "<a dir=auto></a>";
    Object.assign(item.firstChild, { href: location.pathname, textContent: words.slice(0, 60) });
    for (const each of list.querySelectorAll(".day")) each.remove();
    list.insertBefore(item, list.querySelector(":scope > [data-at]:not([data-group])"));
    grouped(document);
    titled();
  }
  async function post(form, fields, files = []) {
    let body = new URLSearchParams({ csrf: form.elements.csrf.value, chat: form.elements.chat.value, ...fields });  // read with less work than parts
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
      const { id, text: words, files, instead = "", menu = "", upto = "", back = "", chat = "" } = first;
      const response = await post(command, { id, text: words, instead, upto, back, chat, ...(menu && { menu }) }, files);
      const answer = (response.headers.get("Content-Type") || "").includes("json") ? await response.json() : {};
      if (response.status === 401) return void location.reload();
      again = response.status >= 500;
      if (!again) {
        unsent.shift();
        problem(response.ok ? "" : answer.problem || "Legato did not accept the message. Load the page again.");
        if (response.ok && instead && live && $("before").firstChild) document.dispatchEvent(new CustomEvent("begun", { detail: "back" }));
        for (const id in answer.labels) if ($(id)) $(id).querySelector("summary").textContent = `${answer.labels[id]} ▾`;
        if (answer.told) toast(answer.told);
        if (answer.aside) ask({ ask: answer.aside, no: "Close" });
        if (answer.file) location.assign(answer.file);  // it is only saved
        if (response.ok && (answer.opened || (back && !live))) { keep(); return void location.assign(answer.to); }
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
    list.replaceChildren(...unsent.filter((each) => !each.menu && each.chat === command.elements.chat.value).map((each) => {
      const item = document.createElement("li");
      item.textContent = each.text || each.files.map((file) => file.name).join(", ");
      item.dir = "auto";
      return item;
    }));
    list.hidden = !list.firstChild;
  }
  window.addEventListener("online", () => { pause = 500; sendNext(); });

  // Buttons with commands work on every page; elsewhere than in the chat, the page is loaded again.
  document.addEventListener("click", (event) => {
    const button = event.target.closest("button[form]");
    if (!button || !live || (button.getAttribute("form") !== "command" && button.getAttribute("form") !== "press")) return;
    event.preventDefault();
    const goes = button.name === "branch";
    if (button.getAttribute("form") === "command" && !goes) {
      button.closest("details.menus")?.removeAttribute("open");
      if (button.value === "/undo") document.dispatchEvent(new Event("undo"));
      return say(button.value, [], "", "1");
    }
    button.disabled = true;
    (goes ? post(command, { id: newId(), branch: button.value }) : post(press, { token: button.value }))
      .then(async (response) => {
        if (response.status === 401) return location.reload();
        const told = (await response.json()).problem || "";
        problem(response.ok ? "" : told);
        if (response.ok && told) toast(told);
        button.disabled = response.ok;
      })
      .catch(() => { button.disabled = false; });
  });
  if (!log) return;

  // -- the log ------------------------------------------------------------------------------------------
  const atEnd = () => innerHeight + scrollY >= document.documentElement.scrollHeight - 120;
  const toEnd = () => scrollTo(0, document.documentElement.scrollHeight);
  const end = $("to-end");
  const newest = live || !(location.search || location.hash);
  let follows = newest, before = 0;  // until somebody scrolls up: answers, pictures and the field itself grow
  addEventListener("scroll", () => {
    end.hidden = atEnd();
    follows = newest && (end.hidden || (follows && scrollY >= before));
    before = scrollY;
  }, { passive: true });
  new ResizeObserver(() => { if (follows) toEnd(); }).observe($("main"));
  end.addEventListener("click", toEnd);

  // An answer can be made again, an earlier one by asking anew, and words be said anew that are no command.
  const named = (said) => said.closest("li").dataset.event ?? (live ? said.closest("li").id.slice(2) : "");
  const words = (said) => said.querySelector(".plain")?.textContent || "";
  const lastSaid = () => [...log.querySelectorAll(".said")].filter((each) => !words(each).startsWith("/")).at(-1);
  const lastReply = () => [...log.querySelectorAll("article:is(.reply:not(.made), .error:not(.notice)), li:not(:has(> .reply:not(.made))) + li > .stopped")].at(-1);
  function above(reply) {
    let item = reply.closest("li");
    while (item && !item.querySelector(".said")) item = item.previousElementSibling;
    return item;
  }
  const commands = (item) => !item || words(item).startsWith("/");
  const askedFor = (reply) => (commands(above(reply)) ? null : above(reply).querySelector(".said"));
  // All that a message holds: of long words the page has only the beginning, and of files only the names.
  async function whole(said) {
    const file = async (each) => new File([await (await got(each.href || each.src)).blob()], each.dataset.name, { type: each.dataset.type });
    const parts = [said.querySelector(".cut") ? written(said) : words(said), ...[...said.querySelectorAll("[data-name]")].map(file)];
    const [text, ...files] = await Promise.all(parts);
    return { text, files };
  }
  const MISSING = "I cannot load all of this message right now. Try again in a moment.";
  document.addEventListener("again", async ({ detail }) => {
    if (detail === lastReply()) return say("/retry");
    const said = askedFor(detail);
    try {
      const { text, files } = await whole(said);
      say(text, files, named(said));
      toast("Press ‹ to go back to the old answer, and to what followed it.");
    } catch { problem(MISSING); }
  });
  document.addEventListener("fork", ({ detail }) => say("/branch", [], "", "1", named(above(detail).querySelector(".said"))));
  document.addEventListener("on", () => say("/continue", [], "", "1"));
  function offer(what, hides) {
    for (const each of document.querySelectorAll(`main [data-do=${what}]`)) each.hidden = !composer || hides(each.closest("article"));
  }
  function offerLast() {
    const last = lastReply(), stopped = (item) => item?.querySelector(".stopped");
    offer("on", (reply) => !live || !$("c-continue") || reply !== last || !stopped(reply.closest("li").nextElementSibling));
    offer("edit", (said) => commands(said) || !named(said));
    offer("fork", (reply) => !live || !askedFor(reply) || !named(askedFor(reply)));
    offer("again", (reply) => !live || (reply === last ? reply.matches(".error") && above(reply) && commands(above(reply)) : !askedFor(reply)));
  }
  for (const each of [...log.children].slice(-LATE)) dress(each);
  offerLast();
  requestAnimationFrame(() => setTimeout(() => {
    localise(document);
    dress($("main"));
    offerLast();
  }));
  if (newest) toEnd(); else ($("main").querySelector("li > article mark") || document.querySelector(":target"))?.scrollIntoView({ block: "center" });  // once everything is there: before, all would be laid out twice
  document.addEventListener("shown", ({ detail }) => { localise(detail); dress(detail); offerLast(); if (follows) toEnd(); });

  function put({ id, place, html }) {
    let item = $("e-" + id);
    if (!item) {
      item = document.createElement("li");
      item.id = "e-" + id;
    }
    const open = [...item.querySelectorAll("details")].map((each) => each.open);
    item.dataset.place = place;
    item.innerHTML = html;  // made by the server, where every text is escaped; the page's policy runs no script of it
    item.querySelectorAll("details").forEach((each, at) => { each.open = Boolean(open[at]); });
    localise(item);
    dress(item);
    let next = null;
    for (let each = log.lastElementChild; each; each = each.previousElementSibling) {
      if (each === item) continue;
      if (each.dataset.place <= place) break;
      next = each;
    }
    if (next !== item.nextElementSibling || item.parentElement !== log) log.insertBefore(item, next);
    offerLast();
    // A command may also forget what stands above.
    const begun = /(new|back)$/.exec(item.previousElementSibling?.dataset.place)?.[1] || ($("before").firstChild && "back");
    if (begun && item.querySelector(".command")) document.dispatchEvent(new CustomEvent("begun", { detail: begun }));
  }
  let since = 0, ticks = 0;
  function work({ words, seconds }) {
    $("work").textContent = $("working").dataset.at = words;
    $("working").hidden = !words;
    since = Date.now() - 1000 * seconds;
    clearInterval(ticks);
    ticks = words && setInterval(tick, 1000);
    tick();
    if (follows) toEnd();
  }
  function tick() {
    const seconds = Math.floor((Date.now() - since) / 1000);
    $("seconds").textContent = seconds ? `${seconds} s` : "";
  }
  // A browser keeps six connections to one address: a tab that nobody sees gives its own back.
  let source = null;
  document.addEventListener("visibilitychange", () => {
    if (!document.hidden) return stream();
    source?.close();
    source = null;
  });
  function stream() {
    if (source || document.hidden || !live) return;
    const address = `/events?chat=${log.dataset.chat}&n=${log.dataset.most}&last=${encodeURIComponent(log.dataset.digest)}`;
    source = new EventSource(address);
    const on = (kind, act) => source.addEventListener(kind, (event) => {
      act(JSON.parse(event.data));
      log.dataset.digest = event.lastEventId;
    });
    on("entry", put);
    on("draft", put);
    on("gone", (id) => { $("e-" + id)?.remove(); offerLast(); });
    on("keep", (ids) => {
      const kept = new Set(ids.map((id) => "e-" + id));
      for (const item of [...log.children]) if (!kept.has(item.id)) item.remove();
      offerLast();
    });
    on("drafts", (ids) => {
      for (const item of [...log.children]) if (item.dataset.place === "~" && !ids.includes(item.id.slice(2))) item.remove();
      offerLast();
    });
    on("work", work);
    on("side", function side(html) {
      const menu = $("side").querySelector(".menus[open]"), projects = $("side").querySelectorAll(".project > details");
      if (menu) return menu.addEventListener("toggle", () => side(html), { once: true });
      $("side").innerHTML = html;
      for (const each of projects) if ($(each.id)) $(each.id).open = each.open;
      localise($("side"));
      grouped($("side"));
      titled();
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
  // A connection that was cut is noticed late, and one that was not still lives when the network is back.
  addEventListener("offline", () => document.body.classList.add("away"));
  addEventListener("online", () => { if (source?.readyState === EventSource.OPEN) document.body.classList.remove("away"); });

  // -- writing ------------------------------------------------------------------------------------------
  if (!composer) return;
  const files = $("file"), chosen = $("chosen"), menu = $("commands"), hint = $("editing");
  let picked = [];

  const DRAFT = `${KEPT} ${location.pathname}`;  // what is being written, also when somebody looks at another page
  function grow() {
    if (hint.hidden) try { sessionStorage.setItem(DRAFT, text.value); } catch { /* private mode */ }
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
      if (/^image\/(png|jpeg|gif|webp)$/.test(file.type)) {
        const shown = document.createElement("img");
        shown.alt = "";
        shown.src = URL.createObjectURL(file);
        shown.onload = () => URL.revokeObjectURL(shown.src);
        item.append(shown);
      }
      item.append(file.name, remove);
      return item;
    }));
  }
  document.addEventListener("recorded", (event) => pick([event.detail]));
  files.addEventListener("change", () => { pick(files.files); files.value = ""; });
  const dropping = (on) => document.body.classList.toggle("dropping", on);
  document.addEventListener("dragover", (event) => {
    event.preventDefault();
    dropping(event.dataTransfer.types.includes("Files"));
  });
  document.addEventListener("dragleave", (event) => { if (!event.relatedTarget) dropping(false); });
  document.addEventListener("drop", (event) => {
    event.preventDefault();
    dropping(false);
    if (event.dataTransfer.files.length) pick(event.dataTransfer.files);
  });
  text.addEventListener("paste", (event) => {
    const words = event.clipboardData.getData("text/plain");
    const long = text.value.length + words.length > text.maxLength;  // else the browser would drop the end unsaid
    const pasted = long ? [new File([words], "pasted.txt", { type: "text/plain" })] : event.clipboardData.files;
    if (pasted.length) { event.preventDefault(); pick(pasted); }
  });

  // A message can be said anew: then it is taken back with all that followed. What was being written waits meanwhile.
  let instead = "", aside = null;
  async function editing(said) {
    let now = aside;
    try {
      if (said) now = said.querySelector(".cut, .file") ? await whole(said) : { text: words(said), files: [] };
    } catch { return problem(MISSING); }
    if (hint.hidden) aside = { text: text.value, files: picked };
    follows &&= !said;  // else the growing field would scroll back to the end
    hint.hidden = !said;
    instead = said ? named(said) : "";
    text.value = now.text;
    picked = [];
    pick(now.files);
    document.querySelector("[data-edited]")?.removeAttribute("data-edited");
    said?.closest("li").setAttribute("data-edited", "");
    grow();
    text.focus({ preventScroll: true });
    said?.closest("li").scrollIntoView({ block: "nearest" });
  }
  document.addEventListener("edit", ({ detail }) => editing(detail.closest("[data-edited]") ? null : detail));
  document.addEventListener("undo", () => {
    if (!text.value && lastSaid() && !lastSaid().querySelector(".cut, .file")) { text.value = words(lastSaid()); grow(); }
  });
  $("cancel-edit").addEventListener("click", () => editing(null));

  composer.addEventListener("submit", (event) => {
    event.preventDefault();
    const words = text.value;
    if (!words.trim() && !picked.length) return;
    const most = Number(files.dataset.most);
    if (picked.reduce((sum, file) => sum + file.size, 0) > most) {
      return problem(`The files of one message may have ${most / 1e6} MB together.`);
    }
    const sent = picked;
    const taken = instead;
    text.value = "";
    picked = [];
    if (taken) editing(null);
    else pick([]);
    complete();
    grow();
    say(words, sent, taken);
    toEnd();
    text.focus();
  });

  // Keys, where no words are being written.
  function keys() {
    let box = $("keys");
    if (!box) {
      box = document.createElement("dialog");
      box.id = "keys";
      box.innerHTML = "<h2>Shortcuts</h2><dl><dt><kbd>Enter</kbd></dt><dd>sends, Shift-Enter begins a new line</dd>"
        + Object.entries({
          "/": "commands", "↑": "in an empty field: edits your last message", "Ctrl K": "searches all chats",
          "Ctrl Shift O": "begins a new chat", "Ctrl Shift S": "hides or shows the list",
          "Ctrl Shift C": "copies the last answer", "Ctrl Shift ;": "copies the last code",
          "Shift Esc": "goes to the field", "Esc": "closes what is open, stops an answer", "Ctrl /": "these shortcuts",
        }).map(([keys, does]) => `<dt>${keys.replace(/\S+/g, "<kbd>$&</kbd>")}</dt><dd>${does}</dd>`).join("") + "</dl>"
        + "<form method=dialog><button>Close</button></form>";
      box.setAttribute("aria-label", "Shortcuts");
      document.body.append(box);
    }
    box.showModal();
  }
  $("show-keys").hidden = false;
  $("show-keys").addEventListener("click", keys);
  const copyLast = (where) => [...log.querySelectorAll(`${where} [data-do=copy]`)].at(-1)?.click();
  const held = {
    "k": () => {
      if (fold) fold.open = true;
      if (document.body.matches(".narrow")) $("hide-list").click();
      document.querySelector("nav [type=search]").focus();
    },
    "/": keys,
    "shift o": () => document.querySelector(".fresh")?.click(),
    "shift s": () => $("hide-list").click(),
    "shift c": () => copyLast(".reply > .acts"),
    "shift ;": () => copyLast(".code"),
  };
  document.addEventListener("keydown", (event) => {
    const key = event.key.toLowerCase().replace(":", ";");  // Shift makes one of the other on many keyboards
    const act = (event.ctrlKey || event.metaKey) && !event.altKey && (held[`shift ${key}`] && event.shiftKey ? held[`shift ${key}`] : held[key]);
    if (act) { event.preventDefault(); return act(); }
    if (key === "escape" && event.shiftKey) return text.focus();
    if (key === "escape" && !event.target.closest("input, dialog") && !text.value && !$("working").hidden) return say("/stop", [], "", "1");
    if (event.target.closest("input, textarea, dialog") || event.ctrlKey || event.metaKey || event.altKey) return;
    if (event.key === "?") keys();
    if (event.key === "/") { event.preventDefault(); text.focus(); text.value = text.value || "/"; complete(); }
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
    if (event.key === "ArrowUp" && !text.value && lastSaid()) { event.preventDefault(); return editing(lastSaid()); }
    if (event.key === "Escape" && (!hint.hidden || !menu.hidden)) {
      event.stopPropagation();  // nothing else is closed or stopped
      if (hint.hidden) menu.hidden = true;
      else editing(null);
      return;
    }
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
    }
    if (event.key === "Enter" && !event.shiftKey && !matchMedia("(pointer: coarse)").matches) {
      event.preventDefault();
      composer.requestSubmit();
    }
  });
  if (matchMedia("(pointer: fine)").matches) text.focus({ preventScroll: true });
  try {
    const draft = sessionStorage.getItem(DRAFT);
    if (draft && !text.value) text.value = draft;
    for (const each of JSON.parse(sessionStorage.getItem(KEPT) || "[]")) unsent.push({ ...each, files: [] });
  } catch { /* nothing was kept */ }
  if (text.value) grow();
  keep();
  sendNext();
})();
