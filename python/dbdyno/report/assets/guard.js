/* uPlot asks Intl for the browser's language and time zone while it loads, and a malformed one throws there. */
(function () {
  function works(make) {
    try { make(); return true; } catch (error) { return false; }
  }
  var NumberFormat = Intl.NumberFormat;
  if (!works(function () { new NumberFormat(navigator.language); })) {
    var Guarded = function (language, options) {
      try { return new NumberFormat(language, options); } catch (error) { return new NumberFormat("en-US", options); }
    };
    Guarded.prototype = NumberFormat.prototype;
    Intl.NumberFormat = Guarded;
  }
  var DateTimeFormat = Intl.DateTimeFormat;
  if (!works(function () { new DateTimeFormat().resolvedOptions(); })) {
    Intl.DateTimeFormat = function () { return new DateTimeFormat("en-US", { timeZone: "UTC" }); };
  }
})();
