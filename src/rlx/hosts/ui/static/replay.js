// The scrubber of a replay: it shows frame i and the figures of step i.
"use strict";
document.querySelectorAll("[data-replay]").forEach((viewer) => {
  const find = (name) => viewer.querySelector(`[data-${name}]`);
  const steps = JSON.parse(viewer.querySelector("script").textContent).steps;
  const figure = (value) => (value === null || value === undefined ? "–" : typeof value === "number" ? String(Number(value.toPrecision(4))).replace("-", "−") : value);
  const spell = (row) => {
    const lines = [`step ${row.step}   reward ${figure(row.reward)}   return so far ${figure(row.total)}`, `value ${figure(row.value)}   entropy ${figure(row.entropy)}`];
    if (row.action) lines.push(`action ${row.action.map(figure).join(", ")}`);
    Object.entries(row.distribution).forEach(([name, values]) => lines.push(`${name} ${values.slice(0, 12).map(figure).join(", ")}`));
    Object.entries(row.terms).forEach(([name, value]) => lines.push(`term ${name} ${figure(value)}`));
    return lines.join("\n");
  };
  const slider = find("scrub");
  const show = () => {
    const row = steps[Number(slider.value)];
    find("frame").src = `data:image/jpeg;base64,${row.frame}`;
    find("frame").alt = `frame of step ${row.step}`;
    find("told").textContent = spell(row);
    viewer.querySelectorAll("[data-now]").forEach((line) => { line.setAttribute("x1", slider.value); line.setAttribute("x2", slider.value); });
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
  show();
});
