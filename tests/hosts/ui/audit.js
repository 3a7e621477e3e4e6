// Look at a page as a reader does: contrast, labels, overlap, overflow and layout shift. Returns what is wrong.
(async () => {
  const problems = [];
  const canvas = document.createElement("canvas");
  canvas.width = canvas.height = 1;
  const context = canvas.getContext("2d", { willReadFrequently: true });
  const over = (css, paper) => { // a colour painted over an opaque one
    context.fillStyle = `rgb(${paper.join(",")})`;
    context.fillRect(0, 0, 1, 1);
    context.fillStyle = css;
    context.fillRect(0, 0, 1, 1);
    return [...context.getImageData(0, 0, 1, 1).data.slice(0, 3)];
  };
  const paperOf = (element) => {
    const chain = [];
    for (let at = element; at; at = at.parentElement) chain.unshift(getComputedStyle(at).backgroundColor);
    return chain.reduce((paper, css) => over(css, paper), [255, 255, 255]);
  };
  const light = (rgb) => rgb.map((value) => value / 255).map((value) => (value <= .04045 ? value / 12.92 : ((value + .055) / 1.055) ** 2.4))
    .reduce((sum, value, n) => sum + value * [.2126, .7152, .0722][n], 0);
  const contrast = (a, b) => { const [low, high] = [light(a), light(b)].sort((x, y) => x - y); return (high + .05) / (low + .05); };
  const isShown = (element) => element.checkVisibility({ checkOpacity: true, checkVisibilityCSS: true }) && !element.closest(".hidden, .skip, dialog, script, [aria-hidden=true]");
  const walker = document.createTreeWalker(document.body, NodeFilter.SHOW_TEXT);
  const boxes = [];
  for (let node = walker.nextNode(); node; node = walker.nextNode()) {
    const element = node.parentElement;
    if (!node.textContent.trim() || !isShown(element) || element.tagName === "TITLE" || element.tagName === "OPTION") continue;
    const style = getComputedStyle(element);
    const paper = paperOf(element);
    const ink = over(element.closest("svg") ? style.fill : style.color, paper);
    const needed = parseFloat(style.fontSize) >= 24 ? 3 : 4.5;
    const ratio = contrast(ink, paper);
    if (ratio < needed) problems.push(`contrast ${ratio.toFixed(2)}: ${node.textContent.trim().slice(0, 40)}`);
    if (element.closest("svg")) continue;
    const range = document.createRange();
    range.selectNodeContents(node);
    for (const box of range.getClientRects()) boxes.push([box, node.textContent.trim().slice(0, 30)]);
  }
  for (let a = 0; a < boxes.length; a++) {
    for (let b = a + 1; b < boxes.length; b++) {
      const [one, two] = [boxes[a][0], boxes[b][0]];
      const wide = Math.min(one.right, two.right) - Math.max(one.left, two.left);
      const high = Math.min(one.bottom, two.bottom) - Math.max(one.top, two.top);
      if (wide > 3 && high > 6) problems.push(`overlap: ${boxes[a][1]} / ${boxes[b][1]}`);
    }
  }
  for (const field of document.querySelectorAll("input:not([type=hidden]), select, textarea, button")) {
    if (!isShown(field)) continue;
    const label = (field.labels && field.labels.length) || field.getAttribute("aria-label") || (field.tagName === "BUTTON" && field.textContent.trim());
    if (!label) problems.push(`no label: ${field.outerHTML.slice(0, 60)}`);
  }
  for (const image of document.querySelectorAll("img")) if (!image.hasAttribute("alt")) problems.push(`no alt: ${image.src}`);
  for (const picture of document.querySelectorAll("main svg")) if (!picture.getAttribute("aria-label")) problems.push("a picture has no name");
  if (document.documentElement.scrollWidth > document.documentElement.clientWidth + 1) problems.push(`the page is ${document.documentElement.scrollWidth} px wide`);
  const link = document.querySelector("main a, main button");
  if (link) {
    link.focus({ focusVisible: true });
    if (parseFloat(getComputedStyle(link).outlineWidth) < 2) problems.push("focus is not visible");
  }
  const shift = await new Promise((done) => {
    let sum = 0;
    new PerformanceObserver((list) => list.getEntries().forEach((entry) => { if (!entry.hadRecentInput) sum += entry.value; })).observe({ type: "layout-shift", buffered: true });
    setTimeout(() => done(sum), 150);
  });
  if (shift > .02) problems.push(`layout shift ${shift.toFixed(3)}`);
  return problems;
})()
