// The one plot: how long each of the last runs took, and how long after its due time it began.
"use strict";
(() => {
  const seconds = (value) => {
    if (value == null) return "";
    if (value >= 5400) return `${+(value / 3600).toFixed(1)} h`;
    if (value >= 90) return `${+(value / 60).toFixed(1)} m`;
    return `${+value.toFixed(value < 10 ? 2 : 0)} s`;
  };
  const colour = (name) => {
    const probe = document.createElement("i");
    probe.style.color = `var(${name})`;
    document.body.append(probe);
    const found = getComputedStyle(probe).color;
    probe.remove();
    return found;
  };

  const draw = (figure, runs) => {
    const ink = colour("--soft"), rule = colour("--rule");
    const axis = { stroke: ink, grid: { stroke: rule, width: 1 }, ticks: { stroke: rule, width: 1 } };
    const zone = figure.dataset.zone;
    const say = (form) => {
      const format = new Intl.DateTimeFormat("en-GB", { timeZone: zone, ...form });
      return (time) => format.format(new Date(time * 1000));
    };
    const day = say({ day: "numeric", month: "short" }), clock = say({ hour: "2-digit", minute: "2-digit" });
    const whole = say({ dateStyle: "medium", timeStyle: "short" });
    const dates = (_, splits, __, ___, step) => splits.map((time) => (step < 86400 ? `${clock(time)}\n${day(time)}` : day(time)));
    const height = 180;
    const size = () => ({ width: Math.max(200, figure.clientWidth - 24), height });
    const options = {
      ...size(),
      legend: { live: true },
      scales: { x: { time: true }, y: { distr: 3 } }, // seconds and hours on one plot
      axes: [{ ...axis, values: dates }, { ...axis, grid: { show: false }, ticks: { show: false }, size: 64, values: (_, splits) => splits.map((v) => (v == null ? "" : seconds(v))) }],
      series: [
        { label: "due", value: (_, time) => (time == null ? "" : whole(time)) },
        { label: "took", stroke: colour("--busy"), width: 2, points: { size: 5 }, value: (_, v) => seconds(v) },
        { label: "began after", stroke: colour("--gone"), width: 1, dash: [4, 3], points: { size: 4 }, value: (_, v) => seconds(v) },
      ],
    };
    const dataOf = (runs) => [
      runs.map((run) => Date.parse(run.due) / 1000),
      runs.map((run) => Math.max(0.1, run.duration_milliseconds / 1000)),
      runs.map((run) => Math.max(0.1, run.lag_seconds)),
    ];
    figure.replaceChildren(); // the bars, and what is said of them
    const place = document.createElement("div");
    figure.prepend(place);
    figure.dataset.drawn = ""; // what is within is ours when the page is read again
    const plot = new uPlot(options, dataOf(runs), place);
    new ResizeObserver(() => plot.setSize(size())).observe(figure);
    document.addEventListener("htmx:after:swap", async () => {
      const newer = figure.isConnected ? await asked(figure) : null;
      if (newer) plot.setData(dataOf(newer));
    });
  };

  const asked = async (figure) => {
    try {
      const answer = await fetch(figure.dataset.src, { headers: { accept: "application/json" } });
      return answer.ok ? (await answer.json()).runs : null;
    } catch {
      return null; // what is drawn stays
    }
  };

  const start = async () => {
    for (const figure of document.querySelectorAll("figure.plot:not([data-ready])")) {
      figure.dataset.ready = "";
      const runs = await asked(figure);
      if (runs?.length > 1) draw(figure, runs);
    }
  };
  if (document.readyState === "loading") document.addEventListener("DOMContentLoaded", start);
  else start();
})();
