// What pages gain with JavaScript: keys, live news by byte cursor, metric search, and curves that zoom.
"use strict";
(() => {
  const $ = (selector, root = document) => root.querySelector(selector);
  const $$ = (selector, root = document) => [...root.querySelectorAll(selector)];

  // Keys: j and k walk through the rows, x selects, Enter opens, / filters, c compares, ? explains.
  let here = -1;
  const rows = () => $$("#content table tbody tr");
  function walk(by) {
    const all = rows();
    if (!all.length) return;
    all.forEach((row) => row.classList.remove("here"));
    here = Math.max(0, Math.min(all.length - 1, here + by));
    all[here].classList.add("here");
    all[here].scrollIntoView({ block: "nearest" });
  }
  document.addEventListener("keydown", (event) => {
    const isTyping = /^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox";
    if (event.key === "Escape" && isTyping) event.target.blur();
    if (isTyping || event.ctrlKey || event.metaKey || event.altKey) return;
    const row = rows()[here];
    if (event.key === "j") walk(1);
    else if (event.key === "k") walk(-1);
    else if (event.key === "x" && row) { const box = $("input[type=checkbox]", row); if (box) box.checked = !box.checked; }
    else if (event.key === "Enter" && row && event.target === document.body) { const link = $("a", row); if (link) link.click(); }
    else if (event.key === "/") { const field = $("input[type=search]:not([hidden])"); if (field) { event.preventDefault(); field.focus(); } }
    else if (event.key === "c") { const form = $("#selection"); if (form && $$("input:checked", form).length > 1) form.submit(); }
    else if (event.key === "?") $("#keys").showModal();
  });

  // The filter of the metric table.
  const filter = $("#metric-filter");
  if (filter) {
    filter.hidden = false;
    filter.addEventListener("input", () => {
      const word = filter.value.toLowerCase();
      $$("#metric-table tbody tr").forEach((row) => { row.hidden = !row.textContent.toLowerCase().includes(word); });
    });
  }

  // A form that only chooses what is drawn is sent at once.
  $$("form[data-submits]").forEach((form) => {
    $("button", form).hidden = true;
    form.addEventListener("change", () => form.submit());
  });

  // Curves with uPlot, if it is installed: float32 from the server, in the place of the picture.
  const colour = (number) => getComputedStyle(document.documentElement).getPropertyValue(`--s${number % 8}`).trim();
  const faded = (css, share) => { const c = document.createElement("canvas").getContext("2d"); c.fillStyle = css; return c.fillStyle + Math.round(share * 255).toString(16).padStart(2, "0"); };
  const LANE = 17;
  function shade(u, place) { // the stretches that findings point to
    const mark = getComputedStyle(document.documentElement).getPropertyValue("--mark").trim();
    const ratio = window.devicePixelRatio || 1;
    JSON.parse(place.dataset.markings || "[]").forEach(([start, end, name], lane) => {
      const left = Math.max(u.valToPos(start, "x", true), u.bbox.left);
      const right = Math.min(u.valToPos(end, "x", true), u.bbox.left + u.bbox.width);
      if (right <= left) return;
      const top = (6 + lane * LANE) * ratio; // above the curve, a lane for each: findings often point to the same steps
      u.ctx.fillStyle = faded(mark, .22);
      u.ctx.fillRect(left, top, Math.max(right - left, 2), 15 * ratio);
      u.ctx.fillStyle = getComputedStyle(document.documentElement).getPropertyValue("--ink").trim();
      u.ctx.font = `${11 * ratio}px ${getComputedStyle(document.body).fontFamily}`;
      const isRight = left > u.bbox.left + u.bbox.width / 2;
      u.ctx.textAlign = isRight ? "right" : "left";
      u.ctx.textBaseline = "middle";
      u.ctx.fillText(name, isRight ? right - 4 * ratio : left + 4 * ratio, top + 8 * ratio);
    });
  }
  const spelt = (value) => String(Number(value.toPrecision(4))).replace("-", "−");
  async function read(address) { // one binary answer: a header, then float32 columns
    const answer = await fetch(address);
    if (!answer.ok) return null;
    const bytes = await answer.arrayBuffer();
    const length = new DataView(bytes).getUint32(0, true);
    const header = JSON.parse(new TextDecoder().decode(new Uint8Array(bytes, 4, length)));
    const column = (n) => new Float32Array(bytes, 4 + length + 4 * header.points * n, header.points);
    const withGaps = (values) => (values.some(Number.isNaN) ? Array.from(values, (value) => (Number.isNaN(value) ? null : value)) : values);
    return { lines: header.series, data: [column(0), ...header.series.map((_, n) => withGaps(column(n + 1)))] };
  }
  function nearest(u, line, index) { // the closest point of a series that has a value
    const values = u.data[line];
    for (let by = 0; by < 400; by++) {
      if (values[index - by] != null) return index - by;
      if (values[index + by] != null) return index + by;
    }
    return index;
  }
  // Many noisy curves as pixels: painting them as anti-aliased paths takes a software renderer seconds.
  const DENSE = 1.5e6; // pixels that all lines cross from top to bottom
  function travel(data) {
    const share = data.slice(1).map((values) => {
      let low = Infinity, high = -Infinity, way = 0, last = null;
      for (const value of values) {
        if (value == null) continue;
        if (value < low) low = value;
        if (value > high) high = value;
        if (last !== null) way += Math.abs(value - last);
        last = value;
      }
      return high > low ? way / (high - low) : 0;
    });
    return 400 * share.reduce((sum, way) => sum + way, 0);
  }
  function ink(css) { // a colour as one pixel
    const context = document.createElement("canvas").getContext("2d");
    context.fillStyle = css;
    context.fillRect(0, 0, 1, 1);
    return new Uint32Array(context.getImageData(0, 0, 1, 1).data.buffer)[0];
  }
  function raster(u, lines) {
    const { left, top, width, height } = u.bbox;
    const image = u.ctx.getImageData(left, top, width, height);
    const pixels = new Uint32Array(image.data.buffer);
    const { min, max } = u.scales.x;
    const y = u.scales.y;
    const inks = Array.from({ length: 8 }, (_, n) => ink(colour(n)));
    const isPainted = new Uint8Array(pixels.length); // the last line is on top: it is painted first, and no pixel twice
    const free = new Int32Array(width).fill(height); // pixels of each column that are free
    for (let n = lines.length - 1; n >= 0; n--) {
      const line = lines[n];
      const values = u.data[n + 1];
      const pixel = inks[line.group % 8];
      let lastColumn = null, lastRow = 0;
      for (let i = 0; i < values.length; i++) {
        if (values[i] == null) continue;
        const column = Math.round((u.data[0][i] - min) / (max - min) * (width - 1));
        const row = Math.round((y.max - values[i]) / (y.max - y.min) * (height - 1));
        if (lastColumn !== null && column >= 0 && lastColumn < width) {
          const slope = column > lastColumn ? (row - lastRow) / (column - lastColumn) : 0;
          for (let c = Math.max(lastColumn, 0); c <= Math.min(column, width - 1); c++) {
            if (!free[c]) continue;
            let from = slope ? lastRow + slope * (c - lastColumn - .5) : lastRow;
            let to = slope ? from + slope : row;
            if (from > to) [from, to] = [to, from];
            const low = Math.max(0, Math.round(Math.max(from, Math.min(row, lastRow))));
            const high = Math.min(height - 1, Math.round(Math.min(to, Math.max(row, lastRow))));
            for (let r = low, at = low * width + c; r <= high; r++, at += width) {
              if (isPainted[at]) continue;
              isPainted[at] = 1;
              pixels[at] = pixel;
              free[c]--;
            }
          }
        }
        lastColumn = column;
        lastRow = row;
      }
    }
    u.ctx.putImageData(image, left, top);
  }
  function look(line, few, alone) { // a line of one point is shown as a dot
    const c = colour(line.group);
    const isEnd = line.kind === "low" || line.kind === "high";
    return {
      label: line.name, stroke: isEnd ? "transparent" : line.kind === "seed" ? faded(c, few ? .3 : .2) : c,
      width: line.kind === "mean" && few ? 2.2 : 1, points: { show: few && alone, size: 7 }, spanGaps: true,
      dash: few && line.group >= 8 ? [7, 4] : undefined, // a hundred dashed lines take a second to paint
    };
  }
  function tell(u, place, lines, focused) { // the value under the pointer, in a line whose height is reserved
    const out = $(".readout", place);
    if (!out) return;
    const line = lines[focused - 1];
    const index = u.cursor.idx;
    if (!line || index == null) { out.textContent = ""; return; }
    const at = nearest(u, focused, index);
    const value = u.data[focused][at];
    const what = { mean: "mean", seed: `seed ${line.seed}`, low: "lower end", high: "upper end" }[line.kind];
    out.textContent = value == null ? "" : `${line.name} · ${what} · ${spelt(value)} at ${Math.round(u.data[0][at]).toLocaleString("en")}`;
  }
  async function plot(place) {
    const read_ = await read(place.dataset.curves);
    const picture = $(".plot", place);
    const figure = $("figure", place);
    if (!read_ || !picture || !figure || !read_.lines.length) return;
    const { lines, data } = read_;
    const started = performance.now();
    const few = lines.filter((line) => line.kind === "mean").length <= 12;
    const bands = [];
    lines.forEach((line, n) => { if (line.kind === "low") bands.push({ series: [n + 2, n + 1], fill: faded(colour(line.group), .16) }); });
    const text = getComputedStyle(document.documentElement).getPropertyValue("--muted").trim();
    const grid = { stroke: getComputedStyle(document.documentElement).getPropertyValue("--line").trim(), width: .6 };
    const ticks = { ...grid, size: 4 };
    const font = `12px ${getComputedStyle(document.body).fontFamily}`;
    const box = picture.getBoundingClientRect();
    const target = document.createElement("div");
    target.className = "plot";
    let focused = 0;
    const isDense = !few && travel(data) > DENSE;
    const isAlone = (values) => values.reduce((count, value) => count + (value != null), 0) === 1;
    const looks = lines.map((line, n) => ({ ...look(line, few, isAlone(data[n + 1])), ...(isDense ? { paths: () => null } : {}) }));
    const chart = new window.uPlot({
      width: Math.floor(box.width), height: Math.floor(box.height), bands,
      padding: [12 + LANE * JSON.parse(place.dataset.markings || "[]").length, 12, null, null], series: [{}, ...looks],
      scales: { x: { time: false } }, legend: { show: false }, focus: { alpha: few ? .25 : 1 },
      cursor: { focus: { prox: 30 }, dataIdx: nearest, points: { one: true, size: 7 }, y: false },
      axes: [{ stroke: text, grid: { show: false }, ticks, font, size: 34, space: 70, label: figure.dataset.x, labelFont: font, labelSize: 18, labelGap: 0, values: (u, all) => all.map((value) => short(value)) },
        { stroke: text, grid, ticks: { show: false }, font, size: 60, label: figure.dataset.y, labelFont: font, labelSize: 18, labelGap: 0, values: (u, all) => all.map((value) => short(value)) }],
      hooks: { drawClear: [(u) => shade(u, place)], draw: isDense ? [(u) => raster(u, lines)] : [], setSeries: [(u, n) => { focused = n || 0; tell(u, place, lines, focused); }],
        setCursor: [(u) => tell(u, place, lines, focused)] },
    }, data, target);
    picture.replaceWith(target);
    requestAnimationFrame(() => requestAnimationFrame(() => { // after the frame in which it was painted
      document.documentElement.dataset.drawnMs = (performance.now() - started).toFixed(1);
    }));
    new ResizeObserver(() => {
      const width = Math.floor(figure.clientWidth);
      if (Math.abs(width - chart.width) > 2) chart.setSize({ width, height: chart.height });
    }).observe(figure);
  }
  function short(value) {
    for (const [size, unit] of [[1e9, "G"], [1e6, "M"], [1e3, "k"]]) if (Math.abs(value) >= size) return (Number((value / size).toPrecision(4)) + unit).replace("-", "−");
    return spelt(value);
  }
  function draw() {
    if (!window.uPlot) return;
    $$("[data-curves]").forEach((place) => { plot(place).catch(() => {}); });
  }
  draw();

  // News of a run in training: ask with a byte cursor, and load only the parts that changed.
  const live = document.body.dataset.live;
  if (!live) return;
  let cursor = "";
  let chartAfter = 0;
  const load = async (id) => {
    const place = document.getElementById(id);
    if (!place || !place.dataset.fragment) return null;
    const answer = await fetch(place.dataset.fragment);
    if (answer.ok) place.innerHTML = await answer.text(); // the server escapes all that it renders
    return answer;
  };
  async function ask() {
    if (document.hidden) return;
    const answer = await fetch(`${live}?cursor=${encodeURIComponent(cursor)}`);
    if (answer.status !== 200) return;
    const news = await answer.json();
    const isFirst = cursor === "";
    cursor = news.cursor;
    if (news.steps) {
      Object.entries(news.steps).forEach(([name, text]) => $$("[data-steps]").forEach((cell) => { if (cell.dataset.steps === name) cell.textContent = text; }));
      return;
    }
    if (live === "/live/machine") { await load("machine"); return; }
    const line = document.getElementById("news");
    if (line) line.textContent = news.line;
    document.documentElement.dataset.newsAt = String(Date.now());
    if (isFirst) return;
    if (performance.now() >= chartAfter) {
      const began = performance.now();
      let pause = 0;
      for (const name of ["summary", "seeds", "curve"]) {
        const part = await load(name);
        pause += Number((part && part.headers.get("x-next-refresh")) || 5);
      }
      chartAfter = began + 1000 * pause;
      draw();
      const openLogs = $$("#logs details").map((part) => part.open);
      await load("logs");
      $$("#logs details").forEach((part, n) => { if (n in openLogs) part.open = openLogs[n]; });
    }
    if (news.status !== "running") location.reload();
  }
  setInterval(() => { ask().catch(() => {}); }, live === "/live/machine" ? 3000 : 1500);
})();
