// The arithmetic of `hushfit plan`, in the browser: no server, nothing is sent anywhere.
// tests/docs/test_planner.py compares it with the command.
"use strict";

const Plan = (() => {
  // The rule of src/hushfit/forecast/_accuracy.py, and the reserve of a budget.
  const SIZE = 0.24, POWER = 0.69, FACTOR = 2.7, WORST = 0.5, RESERVED = 1e-5;
  const SENSITIVITY = { "replace-one": 2, "add-remove": 1, label: 1, "person-label": 1 };
  // Shares of the budget and counts of the default solver's releases.
  const RELEASES = [["second moment", 1, 0.097], ["gradient", 60, 0.873], ["calibration", 1, 0.03]];
  const LABEL_RELEASES = [["labels", 1, 0.3], ["labels near the boundary", 1, 0.7]];

  const density = (t) => Math.exp(-t * t / 2) / Math.sqrt(2 * Math.PI);

  // Mills' ratio: the tail of a normal above t, over its density at t.
  function mills(t) {
    if (t < -6) return 1 / density(t) - mills(-t);
    if (t > 2.5) {
      let value = 0;
      for (let k = 400; k >= 1; k--) value = k / (t + value);
      return 1 / (t + value);
    }
    let sum = 0, term = t;
    for (let k = 1; Math.abs(term) > 1e-18; k++) {
      sum += term;
      term *= t * t / (2 * k + 1);
    }
    return 0.5 / density(t) - sum;
  }

  const normal = (t) => (t > 0 ? 1 - density(t) * mills(t) : density(t) * mills(-t));

  // Delta of a Gaussian mechanism: exp(epsilon) times one density is the other, so that the
  // difference of two tails is one density times a difference of Mills' ratios.
  function gaussianDelta(epsilon, mu) {
    const low = epsilon / mu - mu / 2, high = epsilon / mu + mu / 2;
    return low < -30 ? 1 : density(low) * (mills(low) - mills(high));
  }

  // The largest mu that is (epsilon, delta)-private.
  function gaussianMu(epsilon, delta) {
    let low = 1e-9, high = 100;
    for (let k = 0; k < 200; k++) {
      const middle = Math.sqrt(low * high);
      if (gaussianDelta(epsilon, middle) <= delta) low = middle; else high = middle;
    }
    return low;
  }

  // units: rows or persons. Returns what `hushfit plan` prints for one epsilon.
  function plan({ units, columns, epsilon, delta, adjacency, targetLoss }) {
    const mu = gaussianMu(epsilon, delta);
    const noiseOfOne = SENSITIVITY[adjacency] * Math.sqrt(columns + 1) / mu;
    const loss = Math.min(SIZE * Math.pow(noiseOfOne / units, POWER), WORST);
    const rows = (target) =>
      Math.max(2, Math.ceil(noiseOfOne / Math.pow(target / SIZE, 1 / POWER)));
    const spendable = gaussianMu((1 - RESERVED) * epsilon, (1 - RESERVED) * delta);
    const releases = adjacency.endsWith("label") ? LABEL_RELEASES : RELEASES;
    return {
      mu,
      loss, lossLow: loss / FACTOR, lossHigh: Math.min(loss * FACTOR, WORST),
      needed: [rows(targetLoss), rows(targetLoss * FACTOR), rows(targetLoss / FACTOR)],
      noise: releases.map(([name, count, share]) =>
        ({ name, count, multiplier: Math.sqrt(count / share) / spendable })),
      // Telling two neighbouring tables apart, each as likely beforehand.
      right: Math.min(1, (Math.exp(epsilon) + delta) / (1 + Math.exp(epsilon))),
      rightGaussian: normal(mu / 2),
    };
  }

  return { plan, gaussianDelta, gaussianMu, normal };
})();

if (typeof module !== "undefined") module.exports = Plan;

if (typeof document !== "undefined") document.addEventListener("DOMContentLoaded", () => {
  const form = document.getElementById("planner");
  if (!form) return;
  const at = (name) => form.elements[name];
  const whole = (x) => Math.round(x).toLocaleString("en");
  const short = (x) => Number(x.toPrecision(3)).toString();
  // Sliders are logarithmic: their value is a power of ten.
  const SHORT = { units: (x) => whole(rounded(x)), columns: (x) => whole(rounded(x)),
    epsilon: short, delta: (x) => x.toExponential(1), loss: (x) => short(100 * x) + (short(100 * x) === "1" ? " point" : " points") };
  const rounded = (x) => { const step = 10 ** Math.max(0, Math.floor(Math.log10(x)) - 1);
    return Math.round(x / step) * step; };
  const value = (name) => {
    const x = 10 ** Number(at(name).value);
    return name === "units" || name === "columns" ? rounded(x) : Number(x.toPrecision(2));
  };

  function draw() {
    const adjacency = at("adjacency").value, unit = at("unit").value;
    const given = { units: value("units"), columns: value("columns"), epsilon: value("epsilon"),
      delta: value("delta"), targetLoss: value("loss"),
      adjacency: adjacency === "label" && unit === "persons" ? "person-label" : adjacency };
    for (const name of Object.keys(SHORT)) {
      const x = name === "loss" ? given.targetLoss : given[name];
      form.querySelector(`output[name=${name}Shown]`).value = SHORT[name](x);
    }
    const made = Plan.plan(given), points = (x) => (100 * x).toFixed(2);
    const put = (id, text) => { document.getElementById(id).textContent = text; };
    put("plan-unit", unit);
    put("plan-lost", `${points(made.loss)} points`);
    put("plan-range", `${points(made.lossLow)} to ${points(made.lossHigh)}`);
    put("plan-needed", `${whole(made.needed[0])} ${unit}`);
    put("plan-needed-range", `${whole(made.needed[1])} to ${whole(made.needed[2])}`);
    put("plan-noise", made.noise.map(({ name, count, multiplier }) =>
      `${count} x ${name}: ${short(multiplier)}`).join("; "));
    put("plan-right", `${(100 * made.right).toFixed(1)} %`);
    put("plan-right-gaussian", `${(100 * made.rightGaussian).toFixed(1)} %`);
    put("plan-factor", short(Math.exp(given.epsilon)));
    const change = { "replace-one": unit === "rows" ? "one row is replaced by any other"
        : "one person, with all rows, is replaced by any other",
      "add-remove": unit === "rows" ? "one row is there or not"
        : "one person, with all rows, is there or not",
      label: unit === "rows" ? "one label is replaced; FEATURES ARE NOT PROTECTED"
        : "all labels of one person are replaced; FEATURES ARE NOT PROTECTED" };
    put("plan-change", change[adjacency]);
    const weak = given.delta > 1 / given.units;
    document.getElementById("plan-weak").hidden = !weak;
    put("plan-command", `hushfit plan --${unit} ${given.units} --columns ${given.columns} ` +
      `--epsilon-range ${given.epsilon}:${given.epsilon} --delta ${given.delta} ` +
      `--adjacency ${given.adjacency} --target-loss ${given.targetLoss}`);
    document.getElementById("plan-bar").style.width =
      `${100 * Math.min(Math.max(Math.log(made.loss / 0.001) / Math.log(500), 0), 1)}%`;
  }

  form.addEventListener("input", draw);
  draw();
});
