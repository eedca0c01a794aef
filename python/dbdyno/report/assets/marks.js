/* Values of a drawing's marks: under the pointer, below a finger, and with the arrow keys. */
(function () {
  "use strict";
  var NEAR = 14;  // pixels
  var tip = dbdyno.made("div", { class: "tip", role: "status", hidden: "" });
  document.body.append(tip);

  /* Every mark that says something: a group with a title, or each dot of a path. */
  function marks(svg) {
    var found = [];
    svg.querySelectorAll("title").forEach(function (title) {
      var mark = title.parentNode;
      mark.dataset[mark.tagName === "path" ? "what" : "says"] = title.textContent;
      title.remove();  // a browser shows it only after a while
    });
    svg.querySelectorAll("[data-says]").forEach(function (mark) {
      if (mark.tagName !== "path") { found.push({ mark: mark, says: mark.dataset.says }); return; }
      var says = mark.dataset.says.split("|"), places = mark.getAttribute("d").match(/[-\d.]+,[-\d.]+/g) || [];
      places.forEach(function (place, i) {
        var at = place.split(",");
        found.push({ mark: mark, says: (mark.dataset.what ? mark.dataset.what + ": " : "") + says[i], at: { x: Number(at[0]), y: Number(at[1]) } });
      });
    });
    return found;
  }

  /* Where a mark is in the window: a dot's place, the middle of a group. */
  function where(svg, each) {
    if (each.at) {
      var point = new DOMPoint(each.at.x, each.at.y).matrixTransform(svg.getScreenCTM());
      return { x: point.x, y: point.y };
    }
    var box = each.mark.getBoundingClientRect();
    return { x: box.left + box.width / 2, y: box.top + box.height / 2 };
  }

  function shown(says, x, y) {
    tip.textContent = says;
    tip.hidden = false;
    var room = document.documentElement.clientWidth, box = tip.getBoundingClientRect();
    var left = Math.max(4, Math.min(x + 12, room - box.width - 4)), above = y - box.height - 12;
    tip.style.left = left + scrollX + "px";
    tip.style.top = (above > 4 ? above : y + 18) + scrollY + "px";
  }

  function hidden() { tip.hidden = true; }

  function pointed(svg, found, event) {
    var nearest = null, least = NEAR;
    found.forEach(function (each) {
      if (!each.at) { return; }
      var place = where(svg, each), apart = Math.hypot(place.x - event.clientX, place.y - event.clientY);
      if (apart < least) { least = apart; nearest = each; }
    });
    var mark = event.target.closest("[data-says]");
    if (!nearest && mark) { nearest = found.find(function (each) { return each.mark === mark && !each.at; }); }
    if (nearest) { shown(nearest.says, event.clientX, event.clientY); } else { hidden(); }
  }

  function keyed(svg, found, event) {
    var at = Number(svg.dataset.at || -1), last = found.length - 1;
    var to = { ArrowRight: at + 1, ArrowDown: at + 1, ArrowLeft: at - 1, ArrowUp: at - 1, Home: 0, End: last }[event.key];
    if (event.key === "Escape") { hidden(); }
    if (to === undefined) { return; }
    event.preventDefault();
    svg.dataset.at = to = Math.max(0, Math.min(last, to));
    var place = where(svg, found[to]);
    shown(found[to].says, place.x, place.y);
  }

  document.querySelectorAll(".chart svg").forEach(function (svg) {
    var found = marks(svg);
    if (!found.length) { return; }
    svg.tabIndex = 0;
    svg.addEventListener("pointermove", function (event) { pointed(svg, found, event); });
    svg.addEventListener("pointerdown", function (event) { pointed(svg, found, event); });
    svg.addEventListener("pointerleave", function (event) { if (event.pointerType === "mouse") { hidden(); } });
    svg.addEventListener("keydown", function (event) { keyed(svg, found, event); });
    svg.addEventListener("blur", hidden);
  });
})();
