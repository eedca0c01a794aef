/* Tables that sort, and everything that can be taken away: tables as CSV, charts as SVG, the report's data as JSON. */
var dbdyno = (function () {
  "use strict";
  var root = document.documentElement, SVG = "http://www.w3.org/2000/svg";

  function filled(element, attributes, text) {
    Object.entries(attributes).forEach(function (pair) { element.setAttribute(pair[0], pair[1]); });
    if (text) { element.textContent = text; }
    return element;
  }

  function made(name, attributes, text) { return filled(document.createElement(name), attributes, text); }

  function drawn(name, attributes, text) { return filled(document.createElementNS(SVG, name), attributes, text); }

  /* What the reader's browser keeps as a file. */
  function saved(name, parts, type) {
    var link = made("a", { download: name, href: URL.createObjectURL(new Blob(parts, { type: type })) });
    link.click();
    setTimeout(function () { URL.revokeObjectURL(link.href); }, 1000);
  }

  /* A file's name out of what stands above it. */
  function named(element, fallback, ending) {
    var section = element.closest("section"), heading = section && section.querySelector("h2, h3");
    var words = fallback || (heading && heading.textContent) || document.title;
    return words.toLowerCase().replace(/[^a-z0-9]+/g, "-").replace(/^-+|-+$/g, "").slice(0, 60) + ending;
  }

  function tool(text, label, clicked) {
    var button = made("button", { type: "button", class: "tool", "aria-label": label, title: label }, text);
    button.addEventListener("click", clicked);
    return button;
  }

  /* A cell's text; what stands below its figure in parentheses. */
  function text(cell) {
    var copy = cell.cloneNode(true);
    copy.querySelectorAll("br + small").forEach(function (small) { small.textContent = " (" + small.textContent + ")"; });
    return copy.textContent.replace(/\s+/g, " ").trim();
  }

  /* Rows as they are shown, each with the rows that only draw it. */
  function rows(table) {
    var found = [];
    Array.from(table.tBodies[0].rows).forEach(function (row) {
      if (row.getAttribute("aria-hidden") && found.length) { found[found.length - 1].push(row); } else { found.push([row]); }
    });
    return found;
  }

  /* A spreadsheet would run a text that begins like a formula: what does and is no figure alone, with its unit and interval. */
  var FORMULA = /^[=+\-@\uff1d\uff0b\uff0d\uff20]/;
  var FIGURE = /^[+-][\d.,]+ ?[%a-z\u00b5]{0,12}(?:\/s)?(?: \([-+\d.,% to]*\))?$/i;

  function quoted(value) {
    var safe = FORMULA.test(value) && !FIGURE.test(value) ? "'" + value : value;
    return /[",\n]/.test(safe) ? '"' + safe.replace(/"/g, '""') + '"' : safe;
  }

  function csv(table) {
    var head = table.tHead ? [Array.from(table.tHead.rows[0].cells)] : [];
    var body = rows(table).map(function (group) { return Array.from(group[0].cells); });
    return head.concat(body).map(function (cells) {
      return cells.map(function (cell) { return quoted(text(cell)); }).join(",");
    }).join("\r\n") + "\r\n";
  }

  /* The first figure of a cell: "+3.1 % (...)" is 3.1, "2.50x" is 150, as a difference. What has none is last. */
  function figure(value) {
    var found = /^[^\d+-]{0,2}([-+]?[\d,]*\.?\d+)(x\b)?/.exec(value);
    if (!found) { return null; }
    var number = Number(found[1].replace(/,/g, ""));
    return found[2] ? 100 * (number - 1) : number;
  }

  function compared(a, b) {
    var x = figure(a), y = figure(b);
    if (x !== null && y !== null) { return x - y || a.localeCompare(b, "en", { numeric: true }); }
    if (x === null && y === null) { return a.localeCompare(b, "en", { numeric: true }); }
    return null;
  }

  /* Order rows by a column, upwards or downwards; "none" is the order they came in. */
  function sorted(table, place, direction) {
    var body = table.tBodies[0], sign = direction === "descending" ? -1 : 1;
    var groups = rows(table).map(function (group) { return { group: group, text: text(group[0].cells[place]), first: Number(group[0].dataset.first) }; });
    groups.sort(function (a, b) {
      if (direction === "none") { return a.first - b.first; }
      var order = compared(a.text, b.text);
      if (order === null) { return figure(a.text) === null ? 1 : -1; }
      return sign * order || a.first - b.first;
    });
    groups.forEach(function (each) { body.append.apply(body, each.group); });
    Array.from(table.tHead.rows[0].cells).forEach(function (heading, i) {
      if (i === place && direction !== "none") { heading.setAttribute("aria-sort", direction); } else { heading.removeAttribute("aria-sort"); }
    });
  }

  var NEXT = { ascending: "descending", descending: "none" };

  /* Headings become buttons; on a phone, which shows no headings, a list does the same. */
  function sortable(table, tools) {
    var cells = Array.from(table.tHead.rows[0].cells), narrow = matchMedia("(max-width: 46rem)");
    var chosen = made("select", { "aria-label": "Sort by", class: "tool sort" });
    chosen.append(made("option", { value: "" }, "Sort by …"));
    rows(table).forEach(function (group, i) { group[0].dataset.first = i; });
    cells.forEach(function (heading, place) {
      var button = made("button", { type: "button", class: "order", title: "Sort" });
      button.append.apply(button, Array.from(heading.childNodes));
      heading.append(button);
      button.addEventListener("click", function () { sorted(table, place, NEXT[heading.getAttribute("aria-sort")] || "ascending"); });
      chosen.append(made("option", { value: place }, heading.textContent.trim()));
    });
    chosen.addEventListener("change", function () {
      var place = Number(chosen.value), numbers = figure(text(rows(table)[0][0].cells[place])) !== null;
      sorted(table, place, chosen.value === "" ? "none" : numbers ? "descending" : "ascending");
    });
    function reachable() {
      cells.forEach(function (heading) { heading.firstChild.tabIndex = narrow.matches && table.matches(".cards") ? -1 : 0; });
    }
    narrow.addEventListener("change", reachable);
    reachable();
    tools.append(chosen);
  }

  /* One quiet menu below an object: what it can be saved as. */
  function menu(tools, buttons) {
    var found = made("details", { class: "menu" }), inside = made("div", {});
    inside.append.apply(inside, buttons);
    found.append(made("summary", {}, "Save"), inside);
    tools.append(found);
    return tools;
  }

  function equipped(table) {
    var tools = made("div", { class: "tools" }), caption = table.caption ? table.caption.textContent : "";
    if (table.tHead && rows(table).length > 1) { sortable(table, tools); }
    menu(tools, [tool("CSV", "Save this table as CSV: " + caption, function () {
      saved(named(table, caption, ".csv"), ["\ufeff", csv(table)], "text/csv");
    })]);
    (table.closest(".wide") || table).after(tools);
  }

  /* A drawing as it is seen, in its light colours, with its values as titles. */
  function standalone(svg) {
    var copy = svg.cloneNode(true);
    copy.removeAttribute("tabindex");
    copy.setAttribute("style", "background:#fff;color:#17191c");
    copy.querySelectorAll("g[data-says]").forEach(function (mark) {
      mark.prepend(drawn("title", {}, mark.dataset.says));
      mark.removeAttribute("data-says");
    });
    return new XMLSerializer().serializeToString(copy);
  }

  function pictured(figure, drawn) {
    var caption = figure.querySelector("figcaption"), tools = made("div", { class: "tools" });
    var words = caption ? caption.textContent : "";
    figure.append(menu(tools, [tool("SVG", "Save this chart as SVG" + (words ? ": " + words : ""), function () {
      saved(named(figure, words, ".svg"), [drawn()], "image/svg+xml");
    })]));
  }

  /* The summary card as a picture of its own size. */
  function cardPicture(svg) {
    return new Promise(function (done, failed) {
      var image = new Image(), text = new XMLSerializer().serializeToString(svg);
      image.onerror = failed;
      image.onload = function () {
        var canvas = made("canvas", { width: 1200, height: 630 });
        canvas.getContext("2d").drawImage(image, 0, 0, 1200, 630);
        canvas.toBlob(function (blob) { if (blob) { done(blob); } else { failed(); } }, "image/png");
      };
      image.src = "data:image/svg+xml;charset=utf-8," + encodeURIComponent(text);
    });
  }

  /* One click copies it; a browser that lets no page write pictures to the clipboard keeps it as a file. */
  function copiesCard(button) {
    var svg = document.querySelector(".card svg"), name = named(svg, document.title + " card", "");
    var holder = svg.parentNode, tools = made("div", { class: "tools" });
    function keep(blob) { saved(name + ".png", [blob], "image/png"); button.textContent = "Saved as a file"; }
    button.addEventListener("click", function () {
      var drawing = cardPicture(svg);
      if (typeof ClipboardItem === "undefined" || !navigator.clipboard) { drawing.then(keep); return; }
      navigator.clipboard.write([new ClipboardItem({ "image/png": drawing })])
        .then(function () { button.textContent = "Copied"; }, function () { drawing.then(keep); });
    });
    holder.append(menu(tools, [
      tool("PNG", "Save the summary card as PNG", function () { cardPicture(svg).then(function (blob) { saved(name + ".png", [blob], "image/png"); }); }),
      tool("SVG", "Save the summary card as SVG", function () { saved(name + ".svg", [new XMLSerializer().serializeToString(svg)], "image/svg+xml"); })
    ]));
    button.parentNode.hidden = false;
  }

  function opensAll(button) {
    var open = false;
    button.parentNode.hidden = false;
    button.addEventListener("click", function () {
      open = !open;
      document.querySelectorAll("details.part").forEach(function (part) { part.open = open; });
      button.textContent = open ? "Close all parts" : "Open all parts";
    });
  }

  /* The link holds the data packed; most browsers unpack it themselves. */
  function unpacked(link) {
    if (typeof DecompressionStream === "undefined") { return; }
    link.addEventListener("click", function (event) {
      event.preventDefault();
      var bytes = Uint8Array.from(atob(link.href.split(",")[1]), function (c) { return c.charCodeAt(0); });
      var stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"));
      new Response(stream).blob().then(function (blob) { saved(link.download.replace(/\.gz$/, ""), [blob], "application/json"); });
    });
  }

  document.querySelectorAll("table").forEach(equipped);
  document.querySelectorAll("figure").forEach(function (figure) {
    if (figure.querySelector(".chart svg")) {
      pictured(figure, function () {
        return standalone(Array.from(figure.querySelectorAll(".chart svg")).find(function (svg) { return svg.getClientRects().length; }));
      });
    }
  });
  document.querySelectorAll("[data-packed]").forEach(unpacked);
  document.querySelectorAll("[data-card]").forEach(copiesCard);
  document.querySelectorAll("[data-open]").forEach(opensAll);
  root.dataset.tools = "";
  return { made: made, drawn: drawn, pictured: pictured };
})();
