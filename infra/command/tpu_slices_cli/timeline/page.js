"use strict";

// Draws the chart of the page in the light or dark theme of the system, or in the one that the user selected.
(() => {
  const { data, layout, themes } = JSON.parse(document.getElementById("figure").textContent);
  const chart = document.getElementById("chart");
  const choice = document.getElementById("colours");
  const system = matchMedia("(prefers-color-scheme: dark)");
  const config = {
    responsive: true,
    displayModeBar: true, // its buttons can have the focus, so they must be visible
    displaylogo: false,
    showSendToCloud: false, // the data must not leave the page
    modeBarButtons: [["zoomIn2d", "zoomOut2d", "resetScale2d", "toImage"]],
    toImageButtonOptions: { filename: "timeline" },
  };

  // Returns a copy of a trace or a layout with the values of `paint` set at paths like "marker.line.color".
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
      // Screen readers read the lists instead: the texts of the chart are in no useful order.
      for (const drawing of chart.querySelectorAll(".main-svg")) drawing.setAttribute("aria-hidden", "true");
      chart.dataset.drawn = theme;
    });
  }

  // On a touch screen dragging scrolls the page; with a mouse it selects a time range.
  if (matchMedia("(pointer: coarse)").matches) layout.dragmode = false;
  choice.addEventListener("change", draw);
  system.addEventListener("change", draw);
  chart.replaceChildren();
  draw();
})();
