"use strict";
(() => {
  const page = JSON.parse(document.getElementById("data").textContent);
  const views = [];
  const select = document.getElementById("choice");
  const whole = document.getElementById("whole");
  const organizations = [...document.querySelectorAll("[data-organization]")];

  /** Rows from columns; a column of names is numbered. */
  const rowsOf = (columns) => {
    const fields = Object.entries(columns).map(([field, column]) =>
      [field, column.codes ? column.codes.map((code) => column.names[code]) : column]);
    const length = fields.length ? fields[0][1].length : 0;
    return Array.from({ length }, (_, i) =>
      Object.fromEntries(fields.map(([field, column]) => [field, column[i]])));
  };

  const has = (chart, signal) => (chart.spec.params || []).some(({ name }) => name === signal);

  /** Sets signals in all charts that have them. */
  const send = (signals) => Promise.all(views.map(({ chart, view }) => {
    const known = Object.entries(signals).filter(([name]) => has(chart, name));
    if (!known.length) return null;
    known.forEach(([name, value]) => view.signal(name, value));
    return view.runAsync();
  }));

  const tellChoice = () => {
    document.querySelectorAll(".chosen").forEach((one) => { one.textContent = `(${select.selectedOptions[0].textContent})`; });
    return send({ choice: select.value });
  };

  const sendHidden = () => send({
    hidden: organizations.filter((one) => one.getAttribute("aria-pressed") === "false")
      .map((one) => one.dataset.organization),
  });

  /** Lets the reader drag over a stretch of time, which all charts over time then show. */
  const letZoom = (element, { chart, view }) => {
    let from = null;
    const stretch = document.createElement("div");
    stretch.className = "stretch";
    element.classList.add("timed");
    const svg = () => element.querySelector("svg").getBoundingClientRect();
    const inside = (event) => {
      const scaled = svg().width / element.querySelector("svg").viewBox.baseVal.width;
      const x = (event.clientX - svg().left) / scaled - view.origin()[0];
      return { x: Math.max(0, Math.min(view.width(), x)), scaled };
    };
    element.addEventListener("pointerdown", (event) => {
      if (event.button === 0) from = inside(event).x;
    });
    element.addEventListener("pointermove", (event) => {
      if (from === null) return;
      const { x, scaled } = inside(event);
      const left = svg().left - element.getBoundingClientRect().left;
      stretch.style.left = `${left + (Math.min(from, x) + view.origin()[0]) * scaled}px`;
      stretch.style.width = `${Math.abs(x - from) * scaled}px`;
      element.append(stretch);
    });
    const finish = (event) => {
      if (from === null) return;
      const ends = [from, inside(event).x].sort((a, b) => a - b);
      from = null;
      stretch.remove();
      if (event.type !== "pointerup" || ends[1] - ends[0] < 8) return;
      const [begin, end] = ends.map((x) => Number(view.scale("x").invert(x)));
      whole.hidden = false;
      send({ begin, end });
    };
    ["pointerup", "pointercancel"].forEach((type) => window.addEventListener(type, finish));
    element.addEventListener("dblclick", showWhole);
  };

  const showWhole = () => {
    whole.hidden = true;
    views.filter(({ chart }) => has(chart, "begin")).forEach(({ chart, view }) => {
      chart.spec.params.filter(({ name }) => name === "begin" || name === "end")
        .forEach(({ name, value }) => view.signal(name, value));
      view.runAsync();
    });
  };

  const draw = async (chart) => {
    const element = document.getElementById(chart.name);
    const spec = {
      ...chart.spec,
      width: "container",
      autosize: { type: "fit-x", contains: "padding" },
      config: page.style,
      data: { values: rowsOf(chart.data) },
    };
    const { view } = await embed(element, spec, { mode: "vega-lite", actions: false, renderer: "svg" });
    views.push({ chart, view });
    // labels turn where there is little room, which is known only after the first layout; a choice
    // is sent to all charts that have one, and lays them out anew
    if (!has(chart, "choice")) await view.resize().runAsync();
    // a tap moves no pointer, which is what numbers beside a mark wait for
    element.addEventListener("click", ({ target, clientX, clientY }) => target.dispatchEvent(
      new PointerEvent("pointermove", { bubbles: true, clientX, clientY })));
    if (has(chart, "begin")) letZoom(element, { chart, view });
  };

  if (select) select.addEventListener("change", tellChoice);
  whole.addEventListener("click", showWhole);
  organizations.forEach((one) => one.addEventListener("click", () => {
    one.setAttribute("aria-pressed", String(one.getAttribute("aria-pressed") === "false"));
    sendHidden();
  }));
  window.drawn = (async () => {
    for (const chart of page.charts) await draw(chart);
    if (select) await tellChoice(); // a browser may have kept another choice over a reload
    document.documentElement.dataset.drawn = String(views.length);
  })();
})();
