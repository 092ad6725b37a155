"use strict";
// Menus, what an answer took, and recording. Without it each of these is a page of its own, or a file to be chosen.
(() => {
  const $ = (id) => document.getElementById(id);

  // The part `id` of another page, or null where it cannot be read.
  async function part(address, id) {
    try {
      const answer = await fetch(address);
      return new DOMParser().parseFromString(await answer.text(), "text/html").getElementById(id);
    } catch {
      return null;
    }
  }

  // -- menus: one is open at a time, and Esc or a click elsewhere closes it -------------------------------
  const menus = () => document.querySelectorAll("details.menus[open]");
  document.addEventListener("click", (event) => {
    for (const each of menus()) if (!each.contains(event.target)) each.open = false;
  });
  document.addEventListener("keydown", (event) => {
    if (event.key !== "Escape") return;
    for (const each of menus()) {
      each.open = false;
      each.querySelector("summary").focus();
      event.stopPropagation();
    }
  }, true);

  // What opens at the edge of a small screen is brought into it.
  document.addEventListener("toggle", ({ target }) => {
    if (target.matches("details.menus[open]")) target.querySelector(".menu").scrollIntoView({ block: "nearest" });
  }, true);

  document.addEventListener("keydown", (event) => {
    if (event.key !== "Enter" || event.shiftKey || event.isComposing) return;
    if (!event.target.closest(".menu .name")) return;
    event.preventDefault();  // else the first button of all menus would be pressed
    event.target.nextElementSibling.click();
  });

  // The look changes at once; the form keeps it.
  document.querySelector(".looks")?.addEventListener("submit", (event) => {
    const form = event.target, look = event.submitter.value;
    event.preventDefault();
    document.documentElement.dataset.look = look;
    for (const each of form.querySelectorAll("button")) each.setAttribute("aria-pressed", each === event.submitter);
    fetch(form.getAttribute("action"), { method: "POST", body: new URLSearchParams({ csrf: form.elements.csrf.value, look }) })
      .catch(() => form.submit());
  });

  // Once in each tab, the browser says its time zone, which is a person's who never said theirs.
  const zone = Intl.DateTimeFormat().resolvedOptions().timeZone, looks = document.querySelector(".looks");
  let toldZone = "";
  try { toldZone = sessionStorage.getItem("legato-zone"); } catch { /* private mode */ }
  const mine = `${looks?.closest("details")?.querySelector("summary").textContent} ${zone}`;
  if (looks && zone && zone !== "UTC" && toldZone !== mine) {
    fetch("/zone", { method: "POST", keepalive: true, body: new URLSearchParams({ csrf: looks.elements.csrf.value, zone }) })
      .then(() => sessionStorage.setItem("legato-zone", mine)).catch(() => {});
  }

  // -- the list: it can be hidden, and a chat be dragged into a project -----------------------------------------
  const hide = $("hide-list");
  function narrow() {
    const on = document.body.classList.toggle("narrow");
    try { localStorage.setItem("legato-narrow", on ? "1" : ""); } catch { /* private mode */ }
  }
  if (hide) hide.hidden = false;
  hide?.addEventListener("click", narrow);
  $("fold")?.querySelector("summary").addEventListener("click", (event) => {
    if (!matchMedia("(min-width: 48.01rem)").matches) return;
    event.preventDefault();
    narrow();
  });

  let dragged = null;
  const groupOf = (item) => {
    for (item = item?.closest(".project") || item; item && !item.matches(".day, .project");) item = item.previousElementSibling;
    return item;
  };
  const orderOf = (item) => item.querySelector("[name=order]")?.value.split(" ")[1];
  document.addEventListener("dragstart", ({ target }) => {
    dragged = target.closest?.(".sessions [data-at]");
    if (!dragged || !orderOf(dragged)) return void (dragged = null);
    const fresh = document.createElement("li");
    fresh.className = "day fresh-project";
    fresh.textContent = "New project";
    setTimeout(() => dragged?.parentElement.append(fresh));  // at once, it would end the dragging
  });
  document.addEventListener("dragover", (event) => {
    if (!dragged) return;
    event.preventDefault();
    const over = groupOf(event.target.closest(".sessions > li"));
    for (const each of document.querySelectorAll(".sessions > :is(.day, .project)")) each.classList.toggle("over", each === over);
  });
  document.addEventListener("drop", async (event) => {
    if (dragged) event.preventDefault();  // Firefox would open it
    const { target } = event;
    const to = groupOf(target.closest(".sessions > li")), from = groupOf(dragged), moved = dragged;
    if (!moved || !to || to === from) return;
    if (to.matches(".fresh-project")) {
      moved.querySelector(".menus").open = true;
      return moved.querySelector("[list=projects]").focus();
    }
    const form = $("session"), id = orderOf(moved), group = to.dataset.group;
    for (const verb of [...(from.dataset.group === "Pinned" ? ["unpin"] : []), group === "Pinned" ? "pin" : "move"]) {
      const body = new URLSearchParams({ csrf: form.elements.csrf.value, order: `${verb} ${id}`, [`project ${id}`]: group });
      await fetch(form.getAttribute("action"), { method: "POST", body, headers: { Accept: "application/json" } }).catch(() => null);
    }
    if (!$("log")) location.reload();
  });
  document.addEventListener("dragend", () => {
    dragged = null;
    for (const each of document.querySelectorAll(".fresh-project")) each.remove();
    for (const each of document.querySelectorAll(".sessions .over")) each.classList.remove("over");
  });

  // The list shows the titles that have what is typed; Enter searches all words.
  document.querySelector("nav [type=search]")?.addEventListener("input", (event) => {
    const words = event.target.value.trim().toLowerCase();
    const lines = [...document.querySelectorAll(".sessions li")], has = (each) => each.querySelector("a").textContent.toLowerCase().includes(words);
    for (const each of lines) each.hidden = words && ![each, ...each.querySelectorAll("li")].some((one) => one.dataset.at && has(one));
    if (words) for (const each of document.querySelectorAll(".project > details")) each.open = true;
    $("no-title").hidden = !words || lines.some((each) => !each.hidden);
  });

  // The models are asked for when somebody wants to see them: a server lists them.
  const models = $("models");
  models?.addEventListener("toggle", async () => {
    if (!models.open) return;
    const place = models.querySelector(".menu");
    const found = await part(models.querySelector(".menu a")?.href || "/models", "choices");
    if (!found) return;
    models.querySelector("summary").textContent = `${found.dataset.model} ▾`;
    place.replaceChildren(found);
    const names = [...found.querySelectorAll("li")];
    if (names.length > 8) {
      const filter = document.createElement("input");
      filter.type = "search";
      filter.placeholder = "Find a model";
      filter.setAttribute("aria-label", "Find a model");
      filter.addEventListener("input", () => {
        for (const each of names) each.hidden = !each.textContent.toLowerCase().includes(filter.value.toLowerCase());
      });
      place.prepend(filter);
      filter.focus();
    } else names[0]?.querySelector("button").focus();
  });

  // -- a chat that went back to an earlier conversation shows that above it, and a new one does not ------------------
  document.addEventListener("begun", async (event) => {
    const found = event.detail === "back" ? await part(location.pathname, "before") : null;
    $("before").replaceChildren(...(found ? found.childNodes : []));
    document.dispatchEvent(new CustomEvent("shown", { detail: $("before") }));
  });

  // -- what an answer took, below it ------------------------------------------------------------------------
  document.addEventListener("click", async (event) => {
    const link = event.target.closest("a.about");
    if (!link || event.ctrlKey || event.metaKey) return;
    event.preventDefault();
    const article = link.closest("article"), shown = article.querySelector(".spent");
    if (shown) return shown.remove();
    const found = await part(link.href, "spent");
    if (found) {
      found.removeAttribute("id");
      article.querySelector(".body").after(found);
    } else location.href = link.href;
  });

  // -- settings: a platform that waits for its first message is looked at again, and a restart waited for ---------
  const named = $(location.hash.slice(1));
  if (named?.matches("details")) named.open = true;
  $("provider")?.addEventListener("change", (event) => event.target.form.requestSubmit());
  async function look() {
    const waits = document.querySelector("[data-waits]"), again = document.querySelector(".back");
    if (!waits && !again) return;
    const now = document.hidden ? null : await part("/settings", waits ? waits.id : "model");
    // Not loaded again as it is: it may have come of a form, which would be sent anew.
    if (now && (again || !("waits" in now.dataset))) return location.replace(`/settings?at_${Date.now()}#${waits ? waits.id : "platforms"}`);
    setTimeout(look, 2000);
  }
  setTimeout(look, 2000);

  // -- recording ------------------------------------------------------------------------------------------
  const record = $("record");
  if (record && navigator.mediaDevices && window.MediaRecorder) {
    let recorder = null, dropped = false;
    const told = $("recording"), time = told.querySelector("[role=timer]");
    record.hidden = false;
    told.querySelector("button").addEventListener("click", () => { dropped = true; recorder?.stop(); });
    record.addEventListener("click", async () => {
      if (recorder) return recorder.stop();
      try {
        const stream = await navigator.mediaDevices.getUserMedia({ audio: true }), parts = [];
        recorder = new MediaRecorder(stream);
        recorder.addEventListener("dataavailable", (each) => parts.push(each.data));
        const begun = Date.now(), ticks = setInterval(() => {
          const seconds = Math.floor((Date.now() - begun) / 1000);
          time.textContent = `${Math.floor(seconds / 60)}:${String(seconds % 60).padStart(2, "0")}`;
        }, 250);
        recorder.addEventListener("stop", () => {
          clearInterval(ticks);
          for (const each of stream.getTracks()) each.stop();
          const type = recorder.mimeType.split(";")[0], ending = type.split("/")[1];
          recorder = null;
          record.classList.remove("on");
          told.hidden = true;
          record.setAttribute("aria-label", "Record");
          if (dropped) return;
          const file = new File(parts, `recording.${ending}`, { type });
          document.dispatchEvent(new CustomEvent("recorded", { detail: file }));
        });
        dropped = false;
        time.textContent = "0:00";
        recorder.start();
        told.hidden = false;
        record.classList.add("on");
        record.setAttribute("aria-label", "End the recording");
      } catch {
        $("problem").textContent = "This browser does not let the page use the microphone. Allow the microphone next to the address, and try again.";
        $("problem").hidden = false;
      }
    });
  }
})();
