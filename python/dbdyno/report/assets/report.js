/* Draws the time series: per treatment its median over the trials, and the range as a band. */
(function () {
  "use strict";
  var root = document.documentElement;
  var data = JSON.parse(document.getElementById("series").textContent);
  var plots = [], HEIGHT = 220;

  function floats(base64) {
    var bytes = Uint8Array.from(atob(base64), function (c) { return c.charCodeAt(0); });
    var view = new DataView(bytes.buffer), out = new Array(bytes.length / 4);
    for (var i = 0; i < out.length; i++) {
      var value = view.getFloat32(4 * i, true);
      out[i] = Number.isNaN(value) ? null : value;
    }
    return out;
  }

  function ink(name) {
    return getComputedStyle(root).getPropertyValue(name).trim();
  }

  function figure(value) {
    return value == null ? "–" : String(Number(value.toPrecision(4)));
  }

  function axis(size) {
    return {
      size: size, font: "12px system-ui, sans-serif",
      stroke: function () { return ink("--soft"); },
      grid: { stroke: function () { return ink("--line"); }, width: 1 },
      ticks: { stroke: function () { return ink("--line"); }, width: 1, size: 4 }
    };
  }

  /* Where a phase of the load begins: an upright in the treatment's colour, as long as its line is shown. */
  function uprights(panel) {
    return function (u) {
      var ctx = u.ctx, ratio = window.devicePixelRatio || 1;
      data.phases.forEach(function (phase) {
        var at = panel.lines.findIndex(function (line) { return line.treatment === phase.treatment; });
        var x = Math.round(u.valToPos(phase.at_s, "x", true));
        if (at < 0 || !u.series[3 * at + 1].show || x < u.bbox.left || x > u.bbox.left + u.bbox.width) { return; }
        ctx.save();
        ctx.strokeStyle = ctx.fillStyle = data.treatments[phase.treatment].colour;
        ctx.setLineDash([3 * ratio, 3 * ratio]);
        ctx.lineWidth = ratio;
        ctx.beginPath();
        ctx.moveTo(x, u.bbox.top);
        ctx.lineTo(x, u.bbox.top + u.bbox.height);
        ctx.stroke();
        ctx.font = 11 * ratio + "px system-ui, sans-serif";
        ctx.textAlign = "left";
        ctx.fillText(phase.name, x + 4 * ratio, u.bbox.top + (11 + 12 * at) * ratio);
        ctx.restore();
      });
    };
  }

  function draw(panel, holder) {
    var n = 0, columns = [[]], series = [{ label: "s", value: function (u, v) { return v == null ? "–" : v.toFixed(1); } }];
    var bands = [];
    panel.lines.forEach(function (line) {
      var treatment = data.treatments[line.treatment], at = columns.length, median = floats(line.median);
      n = Math.max(n, median.length);
      columns.push(median, floats(line.high), floats(line.low));
      series.push({
        label: treatment.label, stroke: treatment.colour, width: 2, dash: treatment.dash, points: { show: false },
        value: function (u, v) { return figure(v); }
      });
      for (var k = 0; k < 2; k++) {
        series.push({ label: "", class: "edge", stroke: "transparent", width: 0, points: { show: false } });
      }
      bands.push({ series: [at + 1, at + 2], fill: treatment.colour + (panel.lines.length > 4 ? "18" : "2e") });
    });
    for (var i = 0; i < n; i++) { columns[0].push((i + 0.5) * panel.width_s); }
    var plot = new uPlot({
      width: holder.clientWidth, height: HEIGHT, series: series, bands: bands,
      scales: { x: { time: false, range: function (u, low, high) { return [low <= panel.width_s ? 0 : low, high]; } }, y: { range: function (u, low, high) { return [0, high > 0 ? 1.05 * high : 1]; } } },
      axes: [axis(30), axis(62)],
      cursor: { sync: { key: "time" }, points: { size: 6 }, drag: { x: true, y: false } },
      legend: { live: true },
      hooks: { draw: [uprights(panel)], setCursor: [function (u) { u.root.classList.toggle("pointed", u.cursor.left >= 0); }] }
    }, columns, holder);
    plots.push({ plot: plot, panel: panel, holder: holder });
  }

  function toggled(treatment, on) {
    plots.forEach(function (each) {
      each.panel.lines.forEach(function (line, i) {
        if (line.treatment !== treatment) { return; }
        for (var k = 1; k <= 3; k++) { each.plot.setSeries(3 * i + k, { show: on }, false); }
      });
    });
  }

  document.querySelectorAll("[data-panel]").forEach(function (holder) {
    draw(data.panels[Number(holder.dataset.panel)], holder);
  });
  document.querySelectorAll("[data-treatment]").forEach(function (box) {
    box.addEventListener("change", function () { toggled(Number(box.dataset.treatment), box.checked); });
    if (!box.checked) { toggled(Number(box.dataset.treatment), false); }
  });
  window.addEventListener("resize", function () {
    plots.forEach(function (each) { each.plot.setSize({ width: each.holder.clientWidth, height: HEIGHT }); });
  });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () {
    plots.forEach(function (each) { each.plot.redraw(); });
  });
  root.dataset.drawn = String(plots.length);
})();
