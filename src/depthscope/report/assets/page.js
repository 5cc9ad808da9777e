// The page's own script: draws the charts from the data in this file, follows the reader's choices and theme.
(() => {
  "use strict";
  const page = JSON.parse(document.getElementById("depthscope-data").textContent);
  const darkQuery = window.matchMedia("(prefers-color-scheme: dark)");
  const views = new Map(); // chart id -> vega view
  const state = new Map(); // chart id -> {signal: value}

  // Tables travel by column, texts as indices into a list: a third of the bytes.
  const unpacked = new Map();
  function rows(name) {
    if (!unpacked.has(name)) {
      const { fields, columns, texts } = page.tables[name];
      const count = columns.length ? columns[0].length : 0;
      const out = new Array(count);
      for (let i = 0; i < count; i++) {
        const row = {};
        for (let f = 0; f < fields.length; f++) {
          const value = columns[f][i];
          row[fields[f]] = texts[f] && value !== null ? texts[f][value] : value;
        }
        out[i] = row;
      }
      unpacked.set(name, out);
    }
    return unpacked.get(name).map((row) => ({ ...row }));
  }

  // Figures are made for light paper; each colour has a twin for dark paper.
  function themed(chart) {
    const dark = darkQuery.matches;
    const swap = { ...page.dark, ...chart.dark };
    const text = JSON.stringify(chart.spec);
    const spec = JSON.parse(dark ? text.replace(/#[0-9a-f]{6}/g, (hex) => swap[hex] || hex) : text);
    spec.datasets = Object.fromEntries(chart.tables.map((name) => [name, rows(name)]));
    return spec;
  }

  async function draw(element) {
    const id = element.dataset.chart;
    const chart = page.charts[id];
    const old = views.get(id);
    if (old) old.finalize();
    const result = await vegaEmbed(element, themed(chart), {
      mode: "vega-lite",
      renderer: "svg",
      actions: false,
      tooltip: { theme: darkQuery.matches ? "dark" : "light" },
    });
    views.set(id, result.view);
    for (const [signal, value] of Object.entries(state.get(id) || {})) result.view.signal(signal, value);
    if (element.classList.contains("square")) {
      const square = () => result.view.height(result.view.width()).runAsync();
      result.view.addSignalListener("width", () => setTimeout(square));
      result.view.height(result.view.width());
    }
    await result.view.runAsync();
    element.dataset.drawn = "yes";
  }

  // What is folded away has no width to draw in; it is drawn when it opens.
  const shown = (element) => !element.closest("[hidden], details:not([open])");
  async function drawAll(again) {
    for (const element of document.querySelectorAll(".chart")) {
      if (shown(element) && (again || !element.dataset.drawn)) await draw(element);
    }
    document.documentElement.dataset.ready = "yes";
  }

  function set(figure, signal, value) {
    const waits = [];
    for (const element of figure.querySelectorAll(".chart")) {
      const id = element.dataset.chart;
      state.set(id, { ...state.get(id), [signal]: value });
      const view = views.get(id);
      if (view) waits.push(view.signal(signal, value).runAsync());
    }
    return Promise.all(waits);
  }

  function wire(figure) {
    const control = (name) => figure.querySelector(`[data-control="${name}"]`);
    const quantity = control("quantity"), depth = control("depth"), at = control("at"), play = control("play");
    if (quantity) quantity.addEventListener("change", () => set(figure, "shown_quantity", quantity.value));
    if (depth) {
      depth.addEventListener("change", () => {
        for (const panel of figure.querySelectorAll(".panel")) panel.hidden = panel.dataset.panel !== depth.value;
        drawAll(false);
      });
    }
    if (!at) return;
    const steps = JSON.parse(at.dataset.steps);
    const show = () => {
      figure.querySelector("output").textContent = steps[at.value];
      at.setAttribute("aria-valuetext", steps[at.value]);
      at.style.setProperty("--share", at.value / at.max);
      return set(figure, "shown_at", Number(at.value));
    };
    let timer = null;
    const stop = () => {
      clearInterval(timer);
      timer = null;
      play.textContent = play.dataset.play;
    };
    at.addEventListener("input", () => { stop(); show(); });
    play.addEventListener("click", () => {
      if (timer !== null) return stop();
      if (at.value === at.max) at.value = 0;
      play.textContent = play.dataset.pause;
      show();
      timer = setInterval(() => {
        if (at.value === at.max) return stop();
        at.value = Number(at.value) + 1;
        show();
      }, 450);
    });
    show();
  }

  function copy(button) {
    const text = document.getElementById(button.dataset.copy).textContent;
    const done = () => {
      const label = button.textContent;
      button.textContent = button.dataset.done;
      setTimeout(() => { button.textContent = label; }, 1500);
    };
    // A page opened as a file may lack the clipboard; then the text is selected, ready for the keyboard.
    const select = () => getSelection().selectAllChildren(document.getElementById(button.dataset.copy));
    if (navigator.clipboard) navigator.clipboard.writeText(text).then(done, select);
    else select();
  }

  // Paper is light: while printing, dark colours are swapped back in the drawn marks.
  function recolor(swap) {
    for (const node of document.querySelectorAll(".chart svg *")) {
      for (const name of ["fill", "stroke"]) {
        const value = node.getAttribute(name);
        if (value && swap[value]) node.setAttribute(name, swap[value]);
      }
    }
  }
  const both = Object.assign({}, page.dark, ...Object.values(page.charts).map((chart) => chart.dark));
  const back = Object.fromEntries(Object.entries(both).map(([light, dark]) => [dark, light]));
  window.addEventListener("beforeprint", () => {
    for (const each of document.querySelectorAll("details.wide")) each.open = true;
  });
  window.addEventListener("beforeprint", () => darkQuery.matches && recolor(back));
  window.addEventListener("afterprint", () => darkQuery.matches && recolor(both));

  document.querySelectorAll("figure.block").forEach(wire);
  for (const each of document.querySelectorAll("details")) each.addEventListener("toggle", () => drawAll(false));
  document.querySelectorAll("[data-copy]").forEach((button) => button.addEventListener("click", () => copy(button)));
  darkQuery.addEventListener("change", () => drawAll(true));
  window.depthscope = { views };
  drawAll(false);
})();
