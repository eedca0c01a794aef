/* A page is read before it is worked with: what the scripts do waits for the first paint, but not for ever. */
function afterFirstPaint(work) {
  "use strict";
  var begun = false;
  function begin() {
    if (!begun) { begun = true; work(); }
  }
  /* Who prints at once, as a browser without a window does, wants the charts too; their own handlers come after this. */
  addEventListener("beforeprint", function (event) {
    if (begun) { return; }
    begin();
    dispatchEvent(new Event(event.type));
  });
  /* A tab in the background paints nothing. */
  if (document.hidden) { begin(); } else { requestAnimationFrame(function () { setTimeout(begin); }); }
}
