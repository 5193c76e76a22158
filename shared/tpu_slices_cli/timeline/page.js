"use strict";

// Draws the figure of the page, in the colours that the system or the reader chose.
(() => {
  const { data, layout, themes } = JSON.parse(document.getElementById("figure").textContent);
  const chart = document.getElementById("chart");
  const choice = document.getElementById("colours");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const config = {
    responsive: true,
    displayModeBar: true, // its buttons can have the focus, so they must be seen
    displaylogo: false,
    showSendToCloud: false, // what a page tells is nobody else's
    modeBarButtons: [["zoomIn2d", "zoomOut2d", "resetScale2d", "toImage"]],
    toImageButtonOptions: { filename: "timeline" },
  };

  // Gives a copy of a trace or a layout, with what the paint says at paths like "marker.line.color".
  function painted(plain, paint) {
    const copy = structuredClone(plain);
    for (const [path, value] of Object.entries(paint)) {
      const keys = path.split(".");
      const last = keys.pop();
      keys.reduce((inner, key) => (inner[key] ??= {}), copy)[last] = value;
    }
    return copy;
  }

  function draw() {
    const system_is = system.matches ? "dark" : "light";
    const theme = choice.value === "system" ? system_is : choice.value;
    document.documentElement.dataset.theme = theme;
    const paint = themes[theme];
    const traces = data.map((trace, number) => painted(trace, paint.data[number]));
    return Plotly.react(chart, traces, painted(layout, paint.layout), config).then(() => {
      // The lists say the same in order; the drawing's texts, read one by one, would not.
      for (const drawing of chart.querySelectorAll(".main-svg")) drawing.setAttribute("aria-hidden", "true");
      chart.dataset.drawn = theme;
    });
  }

  // A finger that drags scrolls the page; a mouse chooses a stretch of time.
  if (matchMedia("(pointer: coarse)").matches) layout.dragmode = false;
  choice.addEventListener("change", draw);
  system.addEventListener("change", draw);
  chart.replaceChildren();
  draw();
})();
