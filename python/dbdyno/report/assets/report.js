/* Draws the time series: per treatment its median over the trials, and the range as a band. */
(function () {
  "use strict";
  var root = document.documentElement;
  var data = JSON.parse(document.getElementById("series").textContent);
  var plots = [], HEIGHT = 220, PRINTED = 330, every = document.querySelector("[data-all]"), zooming = false;

  function floats(base64) {
    var bytes = Uint8Array.from(atob(base64), function (c) { return c.charCodeAt(0); });
    var view = new DataView(bytes.buffer), out = new Array(bytes.length / 4);
    for (var i = 0; i < out.length; i++) {
      var value = view.getFloat32(4 * i, true);
      out[i] = Number.isNaN(value) ? null : value;
    }
    return out;
  }

  /* A colour of the page's style, as it is now: light, dark or printed. */
  function ink(name) {
    return getComputedStyle(root).getPropertyValue("--" + name).trim();
  }

  function figure(value) {
    return value == null ? "–" : Number(value.toPrecision(4)).toLocaleString("en-US", { maximumFractionDigits: 6 });
  }

  function axis(size, label) {
    return {
      size: size, font: "12px system-ui, sans-serif", label: label, labelSize: 18, labelFont: "12px system-ui, sans-serif",
      stroke: function () { return ink("soft"); },
      grid: { stroke: function () { return ink("line"); }, width: 1 },
      ticks: { stroke: function () { return ink("line"); }, width: 1, size: 4 }
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
        ctx.strokeStyle = ink(data.treatments[phase.treatment].class);
        ctx.fillStyle = ink("soft");
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

  /* The values under the cursor: below the chart for the eye, and as the value of a slider for a screen reader. */
  function read(each) {
    var u = each.plot, at = u.cursor.left >= 0 ? u.cursor.idx : null, told = [];
    each.readout.replaceChildren();
    if (at == null) { return; }
    var seconds = u.data[0][at].toFixed(1) + " s";
    each.readout.append(seconds);
    each.panel.lines.forEach(function (line, i) {
      if (!u.series[3 * i + 1].show) { return; }
      var value = figure(u.data[3 * i + 1][at]), item = document.createElement("span"), dot = document.createElement("span");
      dot.className = "swatch " + data.treatments[line.treatment].swatch;
      item.append(dot, value);
      each.readout.append(item);
      told.push(data.treatments[line.treatment].label + " " + value);
    });
    each.holder.setAttribute("aria-valuenow", u.data[0][at].toFixed(1));
    each.holder.setAttribute("aria-valuetext", seconds + ": " + told.join("; "));
  }

  /* All charts show the same stretch of time. */
  function stretch(low, high) {
    zooming = true;
    plots.forEach(function (each) { each.plot.setScale("x", { min: low, max: high }); });
    zooming = false;
  }

  function zoomed(u, key) {
    if (key !== "x" || zooming || !plots.length) { return; }
    stretch(u.scales.x.min, u.scales.x.max);
    var times = u.data[0];
    every.hidden = u.scales.x.min <= times[0] && u.scales.x.max >= times[times.length - 1];
  }

  function showAll() {
    var ends = plots.map(function (each) { return each.plot.data[0][each.plot.data[0].length - 1]; });
    stretch(0, Math.max.apply(null, ends));
    every.hidden = true;
  }

  /* Arrows move the cursor of all charts, with the shift key ten times as far; plus and minus zoom. */
  function keyed(each, event) {
    var u = each.plot, times = u.data[0], last = times.length - 1, shown = u.scales.x;
    var at = u.cursor.left >= 0 && u.cursor.idx != null ? u.cursor.idx : 0, by = event.shiftKey ? 10 : 1;
    var to = { ArrowRight: at + by, ArrowLeft: at - by, ArrowUp: at + by, ArrowDown: at - by, Home: 0, End: last }[event.key];
    if (to !== undefined) {
      to = times[Math.min(last, Math.max(0, to))];
      plots.forEach(function (other) {
        other.plot.setCursor({ left: other.plot.valToPos(to, "x"), top: 10 });
      });
    } else if (event.key === "+" || event.key === "-") {
      var half = (shown.max - shown.min) * (event.key === "+" ? 0.25 : 1);
      u.setScale("x", { min: Math.max(0, times[at] - half), max: Math.min(times[last], times[at] + half) });
    } else if (event.key === "Escape") {
      showAll();
    } else {
      return;
    }
    event.preventDefault();
  }

  /* Whether a line runs where one before it does: both are seen only if the later one is dashed. */
  function covers(columns, at) {
    var own = columns[at], most = Math.max.apply(null, own.map(function (value) { return Math.abs(value || 0); }));
    for (var before = 1; before < at; before += 3) {
      var both = 0, near = 0;
      own.forEach(function (value, i) {
        var other = columns[before][i];
        if (value == null || other == null) { return; }
        both += 1;
        near += Math.abs(value - other) <= 0.02 * most ? 1 : 0;
      });
      if (both && near > 0.5 * both) { return true; }
    }
    return false;
  }

  function draw(panel, holder) {
    var n = 0, columns = [[]], series = [{}], bands = [];
    var each = { panel: panel, holder: holder, readout: holder.nextElementSibling };
    panel.lines.forEach(function (line) {
      var treatment = data.treatments[line.treatment], at = columns.length, median = floats(line.median);
      n = Math.max(n, median.length);
      columns.push(median, floats(line.high), floats(line.low));
      series.push({
        stroke: function () { return ink(treatment.class); }, width: 2, dash: treatment.dash, points: { show: false }
      });
      for (var k = 0; k < 2; k++) { series.push({ stroke: "transparent", width: 0, points: { show: false } }); }
      bands.push({
        series: [at + 1, at + 2], fill: function () { return ink(treatment.class) + (panel.lines.length > 4 ? "18" : "2e"); }
      });
    });
    panel.lines.forEach(function (line, i) {
      if (!series[3 * i + 1].dash.length && covers(columns, 3 * i + 1)) { series[3 * i + 1].dash = [7, 7]; }
    });
    for (var i = 0; i < n; i++) { columns[0].push((i + 0.5) * panel.width_s); }
    each.plot = new uPlot({
      width: holder.clientWidth || PRINTED, height: HEIGHT, series: series, bands: bands,
      scales: { x: { time: false, range: function (u, low, high) { return [low <= panel.width_s ? 0 : low, high]; } }, y: { range: function (u, low, high) { return [0, high > 0 ? 1.05 * high : 1]; } } },
      axes: [axis(28, "s since measuring began"), axis(58, panel.unit || "number")],
      cursor: { sync: { key: "time" }, points: { size: 6 }, drag: { x: true, y: false } },
      legend: { show: false },
      hooks: { draw: [uprights(panel)], setScale: [zoomed], setCursor: [function (u) { each.plot = u; read(each); }] }
    }, columns, holder);
    Object.entries({
      tabindex: "0", role: "slider", "aria-label": panel.title + ": the cursor, in seconds", "aria-valuemin": "0",
      "aria-valuemax": String(columns[0][n - 1]), "aria-valuenow": "0", "aria-valuetext": "Arrow keys read the chart"
    }).forEach(function (pair) { holder.setAttribute(pair[0], pair[1]); });
    holder.addEventListener("keydown", function (event) { keyed(each, event); });
    plots.push(each);
  }

  function toggled(treatment, on) {
    plots.forEach(function (each) {
      each.panel.lines.forEach(function (line, i) {
        if (line.treatment !== treatment) { return; }
        for (var k = 1; k <= 3; k++) { each.plot.setSeries(3 * i + k, { show: on }, false); }
      });
      read(each);
    });
  }

  function fit(width) {
    plots.forEach(function (each) {
      var room = width || each.holder.clientWidth;  // none while it is folded away
      if (room && room !== each.plot.width) { each.plot.setSize({ width: room, height: HEIGHT }); }
    });
  }

  /* Only what can be scrolled needs to be reached by the keyboard. */
  function scrollable() {
    document.querySelectorAll(".wide, pre").forEach(function (box) {
      if (box.scrollWidth > box.clientWidth) { box.tabIndex = 0; } else { box.removeAttribute("tabindex"); }
    });
  }

  function copied(button) {
    var source = document.getElementById(button.dataset.copy), selection = getSelection();
    selection.selectAllChildren(source);
    if (navigator.clipboard) {
      navigator.clipboard.writeText(source.textContent).then(function () { button.textContent = "Copied"; }, function () {});
    }
  }

  /* A run of points without holes: "x,y x,y". */
  function runs(u, at, scale) {
    var found = [[]];
    u.data[at].forEach(function (value, i) {
      if (value == null) { if (found[found.length - 1].length) { found.push([]); } return; }
      found[found.length - 1].push(u.valToPos(u.data[0][i], "x").toFixed(1) + "," + u.valToPos(value, scale).toFixed(1));
    });
    return found.filter(function (one) { return one.length; });
  }

  /* A chart over time as SVG, as it is seen now. */
  function drawing(each) {
    var u = each.plot, left = u.over.offsetLeft, top = u.over.offsetTop, width = u.over.offsetWidth, height = u.over.offsetHeight;
    var svg = dbdyno.drawn("svg", { xmlns: "http://www.w3.org/2000/svg", width: u.width, height: u.height, "font-family": "system-ui, sans-serif", "font-size": 12, fill: ink("ink"), style: "background:" + ink("paper") });
    var inside = dbdyno.drawn("svg", { x: left, y: top, width: width, height: height });
    u.axes.forEach(function (axis, i) {
      axis._splits.forEach(function (split, k) {
        var at = u.valToPos(split, i ? "y" : "x");
        var label = i ? { x: left - 6, y: top + at + 4, "text-anchor": "end" } : { x: left + at, y: top + height + 17, "text-anchor": "middle" };
        inside.append(dbdyno.drawn("path", { d: i ? "M0," + at + "h" + width : "M" + at + ",0v" + height, stroke: ink("line") }));
        svg.append(dbdyno.drawn("text", label, axis._values[k]));
      });
    });
    each.panel.lines.forEach(function (line, i) {
      var treatment = data.treatments[line.treatment], colour = ink(treatment.class), low = runs(u, 3 * i + 3, "y");
      if (!u.series[3 * i + 1].show) { return; }
      runs(u, 3 * i + 2, "y").forEach(function (high, k) {
        inside.append(dbdyno.drawn("polygon", { points: high.concat((low[k] || []).slice().reverse()).join(" "), fill: colour, "fill-opacity": 0.15 }));
      });
      runs(u, 3 * i + 1, "y").forEach(function (median) {
        var curve = dbdyno.drawn("polyline", { points: median.join(" "), fill: "none", stroke: colour, "stroke-width": 2, "stroke-dasharray": (u.series[3 * i + 1].dash || []).join(" ") });
        curve.append(dbdyno.drawn("title", {}, treatment.label));
        inside.append(curve);
      });
    });
    svg.append(dbdyno.drawn("text", { x: left + width / 2, y: top + height + 36, "text-anchor": "middle" }, u.axes[0].label));
    svg.append(dbdyno.drawn("text", { x: 12, y: top + height / 2, "text-anchor": "middle", transform: "rotate(-90 12 " + (top + height / 2) + ")" }, u.axes[1].label));
    svg.append(inside, dbdyno.drawn("title", {}, each.panel.title));
    return new XMLSerializer().serializeToString(svg);
  }

  document.querySelectorAll("[data-panel]").forEach(function (holder) {
    draw(data.panels[Number(holder.dataset.panel)], holder);
  });
  plots.forEach(function (each) {
    dbdyno.pictured(each.holder.closest("figure"), function () { return drawing(each); });
  });
  document.querySelectorAll("[data-treatment]").forEach(function (box) {
    box.addEventListener("change", function () { toggled(Number(box.dataset.treatment), box.checked); });
    if (!box.checked) { toggled(Number(box.dataset.treatment), false); }
  });
  document.querySelectorAll("[data-copy]").forEach(function (button) {
    button.hidden = false;
    button.addEventListener("click", function () { copied(button); });
  });
  if (every) { every.addEventListener("click", showAll); }
  window.addEventListener("resize", function () { fit(); scrollable(); });
  matchMedia("(prefers-color-scheme: dark)").addEventListener("change", function () {
    plots.forEach(function (each) { each.plot.redraw(); });
  });

  /* On paper: light colours, two charts a row, and nothing folded away. */
  var folded = [];
  window.addEventListener("beforeprint", function () {
    root.dataset.printing = "";
    folded = Array.from(document.querySelectorAll("details:not([open])"));
    folded.forEach(function (details) { details.open = true; });
    fit(PRINTED);
  });
  window.addEventListener("afterprint", function () {
    delete root.dataset.printing;
    folded.forEach(function (details) { details.open = false; });
    fit();
  });
  document.addEventListener("toggle", function () {
    if (!("printing" in root.dataset)) { fit(); }
    scrollable();
  }, true);
  scrollable();
  root.dataset.drawn = String(plots.length);
})();
