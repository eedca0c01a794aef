/* The gallery of an atlas: results that fit all that is chosen and hold every word that is typed. */
(function () {
  "use strict";
  var form = document.getElementById("filters"), shown = document.getElementById("shown");
  var search = form.querySelector("input"), choices = Array.from(form.querySelectorAll("select"));
  var all = shown.textContent;
  var results = Array.from(document.querySelectorAll("#results > li")).map(function (item) {
    return { item: item, text: item.dataset.text, facets: JSON.parse(item.dataset.facets) };
  });

  function fits(result, words, chosen) {
    return words.every(function (word) { return result.text.indexOf(word) >= 0; }) &&
      chosen.every(function (choice) { return (result.facets[choice.name] || []).indexOf(choice.value) >= 0; });
  }

  function filter() {
    var words = search.value.toLowerCase().split(/\s+/).filter(Boolean), found = 0;
    var chosen = choices.filter(function (choice) { return choice.value; });
    results.forEach(function (result) {
      var fit = fits(result, words, chosen);
      found += fit ? 1 : 0;
      if (result.item.hidden === fit) { result.item.hidden = !fit; }
    });
    shown.textContent = found === results.length ? all : found + " of " + all;
  }

  form.hidden = false;
  form.addEventListener("input", filter);
  form.addEventListener("reset", function () { setTimeout(filter); });
  form.addEventListener("submit", function (event) { event.preventDefault(); });
  filter();
})();
