// Draws the figures of a page, fits them to its width, and plays the depth slider.
(() => {
  const colours = (scheme) => Object.entries(scheme).map(([name, value]) => `${name}: ${value};`).join(" ");
  const style = document.createElement("style");
  style.textContent =
    `:root { ${colours(drawing.light)} }` +
    `@media screen and (prefers-color-scheme: dark) { :root { ${colours(drawing.dark)} } }`;
  document.head.append(style);

  const tip = document.createElement("div");
  tip.id = "tip";
  tip.hidden = true;
  document.body.append(tip);

  function showTip(handler, event, item, value) {
    tip.hidden = value == null;
    if (tip.hidden) return;
    tip.replaceChildren(
      ...Object.entries(value).map(([name, content]) => {
        const row = document.createElement("div");
        const key = document.createElement("b");
        key.textContent = name;
        row.append(key, ` ${content}`);
        return row;
      }),
    );
    const edge = document.documentElement.clientWidth - tip.offsetWidth - 8;
    tip.style.left = `${Math.max(8, Math.min(event.clientX + 14, edge))}px`;
    const below = event.clientY + 16;
    const fits = below + tip.offsetHeight < window.innerHeight;
    tip.style.top = `${fits ? below : event.clientY - tip.offsetHeight - 10}px`;
  }

  // A slider with a play button; returns nothing, the view follows it.
  function addSlider(figure, view, { signal, low, high }) {
    const box = document.createElement("div");
    box.className = "slider";
    const button = document.createElement("button");
    button.type = "button";
    const range = document.createElement("input");
    Object.assign(range, { type: "range", min: low, max: high, step: (high - low) / 200, value: high });
    range.setAttribute("aria-label", "depth");
    const output = document.createElement("output");
    let playing = 0;
    const show = () => {
      output.textContent = `s = ${(+range.value).toFixed(2)}`;
      range.setAttribute("aria-valuetext", output.textContent);
      view.signal(signal, +range.value).runAsync();
    };
    const stop = () => {
      cancelAnimationFrame(playing);
      playing = 0;
      button.textContent = "\u25b6";
      button.setAttribute("aria-label", "play from depth " + low);
    };
    const play = () => {
      const seconds = 4;
      const from = +range.value < high ? +range.value : low;
      let start;
      const step = (now) => {
        start ??= now;
        const depth = from + ((now - start) / 1000 / seconds) * (high - low);
        range.value = Math.min(depth, high);
        show();
        if (depth < high) playing = requestAnimationFrame(step);
        else stop();
      };
      button.textContent = "\u275a\u275a";
      button.setAttribute("aria-label", "pause");
      playing = requestAnimationFrame(step);
    };
    button.addEventListener("click", () => (playing ? stop() : play()));
    range.addEventListener("input", () => {
      stop();
      show();
    });
    box.append(button, range, output);
    figure.querySelector(".drawing").after(box);
    stop();
    show();
  }

  const drawn = [];
  const widthFor = (figure) => Math.floor(figure.querySelector(".drawing").clientWidth);
  const draw = (figure, specification) => {
    const container = document.createElement("div"); // Vega gives it a role of its own
    figure.querySelector(".drawing").replaceChildren(container);
    const view = drawing.view(specification, { renderer: "svg", container, hover: true });
    view.tooltip(showTip).signal("available", widthFor(figure)).run();
    return view;
  };
  for (const figure of document.querySelectorAll("figure[id]")) {
    const specification = JSON.parse(figure.querySelector("script").textContent);
    const view = draw(figure, specification);
    const slider = (specification.usermeta || {}).slider;
    if (slider) addSlider(figure, view, slider);
    drawn.push({ figure, view });
  }
  window.fathom = { drawn };

  const fit = () => {
    for (const { figure, view } of drawn) {
      const width = widthFor(figure);
      if (width > 0 && width !== view.signal("available")) view.signal("available", width).resize().run();
    }
  };
  new ResizeObserver(() => requestAnimationFrame(fit)).observe(document.querySelector("main"));
  window.addEventListener("beforeprint", fit);

  // A run that is still training: ask for its state, draw its course anew, and load the report when it is there.
  const live = document.querySelector("main").dataset.live;
  const update = async () => {
    try {
      const state = await (await fetch(live)).json();
      if (state.finished) return location.reload();
      document.querySelector(".claim").textContent = state.status;
      const [course] = drawn;
      course.view.finalize();
      course.view = draw(course.figure, state.course);
    } catch {
      document.querySelector(".claim").textContent = "No answer any more: is `fathom view` still running?";
    }
    setTimeout(update, 2000);
  };
  if (live) setTimeout(update, 1000);
})();
