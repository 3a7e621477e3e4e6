// The scrubber of a replay: it shows frame i and the figures of step i.
"use strict";
document.querySelectorAll("[data-replay]").forEach((viewer) => {
  const find = (name) => viewer.querySelector(`[data-${name}]`);
  const all = (name) => viewer.querySelectorAll(`[data-${name}]`);
  const steps = JSON.parse(viewer.querySelector("script").textContent).steps;
  const figure = (value) => {
    if (value === null || value === undefined) return "–";
    if (typeof value !== "number") return value;
    const size = Math.abs(value);
    let text = String(Number(value.toPrecision(4)));
    if (size >= 1000 && size < 1e7) text = Math.round(value).toLocaleString("en");
    else if (size && (size < 1e-4 || size >= 1e7)) text = Number(value.toPrecision(4)).toExponential().replace(/e([+-])(\d)$/, "e$10$2");
    return text.replace(/^-/, "−");
  };
  const spelt = (row, name) => { // a figure by its name, as the server spells it
    const at = name.indexOf(".");
    const value = at < 0 ? row[name] : row[name.slice(0, at)][name.slice(at + 1)];
    return Array.isArray(value) ? value.slice(0, 12).map(figure).join(", ") : figure(value);
  };
  const slider = find("scrub");
  const show = () => {
    const row = steps[Number(slider.value)];
    const shares = row.distribution.probabilities || [];
    find("frame").src = `data:image/jpeg;base64,${row.frame}`;
    find("frame").alt = `frame of step ${row.step}`;
    all("value").forEach((cell) => { cell.textContent = spelt(row, cell.dataset.value); });
    all("bar").forEach((bar) => { bar.value = shares[Number(bar.dataset.bar)] || 0; });
    all("share").forEach((cell) => { cell.textContent = figure(shares[Number(cell.dataset.share)]); });
    all("option").forEach((line) => { line.classList.toggle("chosen", !!row.action && row.action.length === 1 && row.action[0] === Number(line.dataset.option)); });
    all("now").forEach((line) => { line.setAttribute("x1", slider.value); line.setAttribute("x2", slider.value); });
  };
  let timer = 0;
  slider.addEventListener("input", show);
  find("play").addEventListener("click", () => {
    if (timer) { clearInterval(timer); timer = 0; find("play").textContent = "Play"; return; }
    find("play").textContent = "Pause";
    timer = setInterval(() => {
      slider.value = String((Number(slider.value) + 1) % steps.length);
      show();
    }, 60);
  });
  viewer.querySelectorAll(".traces svg").forEach((trace) => { // a click goes to that step
    trace.addEventListener("click", (event) => {
      const box = trace.getBoundingClientRect();
      slider.value = String(Math.round((event.clientX - box.left) / box.width * (steps.length - 1)));
      show();
    });
  });
  show();
});
