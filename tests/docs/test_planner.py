"""The planner page prints what ``hushfit plan`` prints.

The page itself is driven in headless Chromium, its sliders moved by a script. Where there is no
Chromium, Node runs the page's arithmetic.
"""

import html
import itertools
import json
import re
import shutil
import subprocess
from pathlib import Path

import pytest

from hushfit.forecast import forecast, rows_needed
from hushfit.unit import ROW, PrivacyUnit

DOCS = Path(__file__).resolve().parents[2] / "docs"
SCRIPT = DOCS / "_static" / "planner.js"
CHROMIUM = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "chrome"))), None)
NODE = shutil.which("node")
# No sandbox for root, and nothing that calls home.
FLAGS = [
    "--headless",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-sync",
    "--disable-background-networking",
    "--disable-component-update",
    "--virtual-time-budget=20000",
]

SIZES = [(200, 1), (3_000, 12), (32_000, 110), (1_000_000, 900)]
BUDGETS = [(0.01, 1e-10), (0.1, 1e-7), (1.0, 1e-6), (10.0, 0.001)]
RELATIONS = ["replace-one", "add-remove", "label"]
CASES = [
    {
        "unit": unit,
        "adjacency": relation,
        "units": units,
        "columns": columns,
        "epsilon": epsilon,
        "delta": delta,
        "loss": loss,
    }
    for (units, columns), (epsilon, delta), relation in itertools.product(SIZES, BUDGETS, RELATIONS)
    for unit, loss in [("rows" if columns % 2 else "persons", 0.01 if epsilon < 1 else 0.1)]
]

# Moves the sliders of the page to every case, and writes what it then shows.
DRIVER = """
window.addEventListener("load", () => {
  const form = document.getElementById("planner"), shown = [];
  for (const wanted of CASES) {
    for (const [name, value] of Object.entries(wanted)) {
      const field = form.elements[name];
      if (field.type === "range") field.step = "any";
      field.value = field.type === "range" ? Math.log10(value) : value;
    }
    form.dispatchEvent(new Event("input"));
    const seen = {};
    for (const part of document.querySelectorAll("[id^=plan-]")) seen[part.id] = part.textContent;
    shown.push(seen);
  }
  const out = document.createElement("pre");
  out.id = "shown";
  out.textContent = JSON.stringify(shown);
  document.body.append(out);
});
"""


def planned(case):
    """The forecast of the command, and the units it needs."""
    unit = PrivacyUnit.person("mean", None) if case["unit"] == "persons" else ROW
    labels = "person-label" if unit.is_person else "label"
    relation = labels if case["adjacency"] == "label" else case["adjacency"]
    budget = case["epsilon"], case["delta"]
    return (
        forecast(case["units"], case["columns"], *budget, relation, unit=unit),
        rows_needed(case["loss"], case["columns"], *budget, relation),
    )


def run_in_node(code):
    done = subprocess.run([NODE, "-e", code], capture_output=True, text=True, check=True)
    return json.loads(done.stdout)


@pytest.fixture(scope="module")
def shown(tmp_path_factory):
    """What the page shows for every case, in Chromium."""
    if CHROMIUM is None:
        return None
    folder = tmp_path_factory.mktemp("planner")
    form = re.search(r"<form.*</form>", (DOCS / "start/planner.md").read_text("utf-8"), re.S)[0]
    page = folder / "page.html"
    page.write_text(
        f"<!doctype html><meta charset=utf-8><body>{form}<script>{SCRIPT.read_text('utf-8')}"
        f"</script><script>const CASES = {json.dumps(CASES)};{DRIVER}</script></body>",
        encoding="utf-8",
    )
    done = subprocess.run(
        [CHROMIUM, *FLAGS, f"--user-data-dir={folder / 'profile'}", "--dump-dom", page.as_uri()],
        capture_output=True,
        text=True,
        check=True,
    )
    return json.loads(html.unescape(re.search(r'<pre id="shown">(.*?)</pre>', done.stdout)[1]))


def test_something_can_run_the_page():
    assert CHROMIUM or NODE, (
        "Neither Chromium nor Node is here to run the planner. Install Debian's package chromium; "
        "`make browser` does."
    )


@pytest.fixture(scope="module")
def computed():
    """The page's arithmetic for every case, in Node."""
    if NODE is None:
        return None
    cases = [
        {**case, "targetLoss": case["loss"]}
        | ({"adjacency": "person-label"} if _labels_of_persons(case) else {})
        for case in CASES
    ]
    return run_in_node(
        f"const P = require({str(SCRIPT)!r}); const cases = {json.dumps(cases)};"
        "console.log(JSON.stringify(cases.map(P.plan)));"
    )


def _labels_of_persons(case):
    return case["adjacency"] == "label" and case["unit"] == "persons"


@pytest.mark.parametrize("place", range(len(CASES)))
def test_the_page_shows_what_the_command_prints(place, shown, computed):
    plan, needed = planned(CASES[place])
    releases = plan.noise[0].releases
    if shown is not None:
        seen = shown[place]
        assert seen["plan-lost"] == f"{100 * plan.loss:.2f} points"
        assert seen["plan-range"] == f"{100 * plan.loss_low:.2f} to {100 * plan.loss_high:.2f}"
        assert seen["plan-needed"] == f"{needed[0]:,} {CASES[place]['unit']}"
        assert seen["plan-needed-range"] == f"{needed[1]:,} to {needed[2]:,}"
        noises = [float(text.split(": ")[1]) for text in seen["plan-noise"].split("; ")]
        assert noises == [float(f"{noise:.3g}") for _, _, noise in releases]
    if computed is not None:
        made = computed[place]
        assert made["loss"] == pytest.approx(plan.loss, rel=1e-9)
        assert made["needed"] == [*needed]
        assert [(r["name"], r["count"]) for r in made["noise"]] == [(n, c) for n, c, _ in releases]
        for ours, (_, _, noise) in zip(made["noise"], releases, strict=True):
            assert ours["multiplier"] == pytest.approx(noise, rel=1e-6)


def test_the_page_quotes_the_command_that_says_the_same(shown):
    if shown is None:
        return
    case, seen = CASES[0], shown[0]
    assert seen["plan-command"] == (
        f"hushfit plan --{case['unit']} 200 --columns 1 --epsilon-range 0.01:0.01 --delta 1e-10 "
        "--adjacency replace-one --target-loss 0.01"
    )
