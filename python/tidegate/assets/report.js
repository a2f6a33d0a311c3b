// A report: sorts its tables and draws its charts, of time series a case at a time.
"use strict";
document.querySelectorAll("table.sortable").forEach(sortable);
document.querySelectorAll(".series").forEach((section) => {
  const cases = JSON.parse(section.querySelector("script").textContent);
  const place = section.querySelector(".charts"), choice = section.querySelector("select");
  let charts = [];
  const show = (number) => {
    charts.forEach((chart) => chart.destroy());
    charts = cases[number].map((one) => {
      const over = one.over && { ...one.over, ends: one.over.ends?.map((ends) => ends && ends.map(unpack)) };
      const chart = new Chart(place, one.title, one.unit, one.series.map(([name]) => name), [unpack(one.x), ...one.series.map(([, y]) => unpack(y))], over);
      if (one.note) {
        const said = document.createElement("p");
        said.className = "soft";
        said.textContent = one.note;
        chart.box.append(said);
      }
      return chart;
    });
  };
  if (choice) choice.addEventListener("change", () => show(choice.selectedIndex));
  show(0);
});
