// Turns each hover column's <title> into a crosshair with a tooltip; the page is complete without it.
(() => {
  const tip = document.createElement("div");
  tip.className = "tip";
  tip.hidden = true;
  document.body.append(tip);
  const anySvg = document.querySelector("svg");
  if (!anySvg) return;
  const cross = document.createElementNS(anySvg.namespaceURI, "line");
  cross.setAttribute("class", "cross");

  const place = (event) => {
    const left = event.clientX + 16 + tip.offsetWidth > innerWidth ? event.clientX - 16 - tip.offsetWidth : event.clientX + 16;
    tip.style.left = Math.max(6, left) + "px";
    tip.style.top = Math.max(6, Math.min(event.clientY + 14, innerHeight - tip.offsetHeight - 6)) + "px";
  };
  const hide = () => { tip.hidden = true; cross.remove(); };

  for (const hot of document.querySelectorAll(".hot")) {
    const texts = new Map();
    for (const column of hot.children) {
      texts.set(column, column.textContent.split("\n"));
      column.replaceChildren();
    }
    const show = (event) => {
      const lines = texts.get(event.target);
      if (!lines) return;
      const head = document.createElement("b");
      head.textContent = lines[0];
      tip.replaceChildren(head, lines.slice(1).join("\n"));
      const column = event.target;
      for (const [name, value] of [["x1", column.dataset.x], ["x2", column.dataset.x],
        ["y1", column.getAttribute("y")], ["y2", +column.getAttribute("y") + +column.getAttribute("height")]]) cross.setAttribute(name, value);
      hot.before(cross);
      tip.hidden = false;
      place(event);
    };
    hot.addEventListener("pointermove", show);
    hot.addEventListener("pointerdown", show);
    hot.addEventListener("pointerleave", hide);
  }
  addEventListener("scroll", hide, { passive: true });

  const folds = () => document.querySelectorAll("details:not([open])");
  let opened = [];
  addEventListener("beforeprint", () => { opened = [...folds()]; for (const fold of opened) fold.open = true; });
  addEventListener("afterprint", () => { for (const fold of opened) fold.open = false; });
})();
