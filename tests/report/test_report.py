"""The page about a model: it is complete, loads nothing else, and works in a browser."""

import itertools
import json
import os
import re
import shutil
import subprocess
import tempfile
import warnings
from html.parser import HTMLParser

import numpy as np
import pytest

from hushfit import PrivateLinearSVC, PrivateLogisticRegression
from hushfit.data.schema._schema import CategoricalColumn, NumericColumn, Schema, encode
from hushfit.models import Model, PaidReceipt, Provenance
from hushfit.report import CalibrationCell, Confusion, Evaluation, report_page
from hushfit.report.sections._figures import odds_figure, posterior

COLUMNS = (
    NumericColumn("age", 0, 100),
    CategoricalColumn("city", tuple(f"town {k}" for k in range(40))),
    CategoricalColumn("<script>alert(1)</script>", ("a&b", '"c"')),
)


def make_model(kind=PrivateLogisticRegression, classes=("no", "yes"), **settings):
    generator = np.random.default_rng(0)
    cells = {
        "age": generator.uniform(0, 100, 300),
        "city": generator.choice(COLUMNS[1].categories, 300),
        COLUMNS[2].name: generator.choice(["a&b", '"c"'], 300),
    }
    schema = Schema(COLUMNS, CategoricalColumn("ill", classes), "person")
    X, _ = encode(cells, schema)
    y = np.array(classes)[(len(classes) * cells["age"] / 100.001).astype(int)]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        fitted = kind(
            **{
                "epsilon": 1.0,
                "delta": 1e-4,
                "classes": list(classes),
                "random_state": 0,
                **settings,
            }
        ).fit(X, y)
    error = np.full((len(fitted.coef_), X.shape[1] + 1), 0.3)
    return Model(
        fitted,
        schema,
        error,
        PaidReceipt("people", 1, "a" * 64),
        Provenance.now("hushfit fit x.csv", "b" * 64),
    )


CELLS = tuple(
    CalibrationCell(k / 10, (k + 1) / 10, 10 * k + 1, k / 10 + 0.05, k / 10 + 0.04)
    for k in range(10)
)
CONFUSION = Confusion(("no", "yes"), ((250.0, 26.0), (20.0, 164.0)))
BASELINES = {"log_loss_baseline": 0.67, "pr_auc": 0.93, "pr_auc_baseline": 0.4}
SCORES = Evaluation(460, 3, 0.9, 0.6, 0.3, 0.95, 0.01, "yes", CELLS, CONFUSION, **BASELINES)
MODELS = {
    "binary": (make_model(), SCORES),
    "three classes": (make_model(classes=("a", "b", "c")), None),
    "support vectors": (make_model(PrivateLinearSVC), None),
    "not private": (make_model(epsilon=float("inf")), None),
}


class Tags(HTMLParser):
    """Collects tags and their attributes."""

    def __init__(self, page):
        super().__init__()
        self.found = []
        self.feed(page)

    def handle_starttag(self, tag, attrs):
        self.found.append((tag, dict(attrs)))


@pytest.mark.parametrize(("model", "scores"), MODELS.values(), ids=MODELS)
def test_the_page_asks_for_nothing(model, scores):
    page = report_page(model, "c" * 64, scores)
    for tag, attributes in Tags(page).found:
        assert not {"src", "srcset", "action", "data"} & attributes.keys(), tag
        assert attributes.get("href", "#")[:1] == "#" or attributes["href"] == "data:,"
    assert "url(" not in page
    assert "@import" not in page
    assert "default-src 'none'" in page


def test_the_page_has_all_its_parts():
    model, scores = MODELS["binary"]
    page = report_page(model, "c" * 64, scores)
    ids = {attributes.get("id") for _, attributes in Tags(page).found}
    assert ids >= {"promise", "odds", "budget", "coefficients", "evaluation", "public", "papers"}
    for release in model.guarantee.releases:
        assert release.name in page
    for expected in (
        "epsilon=1",
        "<dd>one row<small>",
        "several rows",
        "a" * 64,
        "b" * 64,
        "c" * 64,
        "hushfit fit x.csv",
        "town 7",
        "seed",
    ):
        assert expected in page
    assert page.count('<tr data-name="') == len(model.feature_names) + 1


def test_a_label_in_the_schema_promises_nothing_to_persons():
    """The schema of these models says that a row is a person; this is not checked."""
    model, scores = MODELS["binary"]
    assert model.schema.unit == "person"
    page = report_page(model, "", scores)
    assert "one person" not in page
    assert "What epsilon means for one row" in page


def test_names_cannot_become_markup():
    page = report_page(MODELS["binary"][0])
    assert "<script>alert" not in page
    assert "&lt;script&gt;alert(1)&lt;/<wbr>script&gt;=<wbr>a&amp;b" in page


@pytest.mark.parametrize(("model", "scores"), MODELS.values(), ids=MODELS)
def test_every_picture_has_words(model, scores):
    for tag, attributes in Tags(report_page(model, "", scores)).found:
        if attributes.get("role") == "img":
            assert attributes.get("aria-label") or attributes.get("aria-labelledby"), tag
        if tag == "svg":
            assert attributes.get("role") == "img"


def test_a_page_without_promise_says_so():
    page = report_page(MODELS["not private"][0])
    assert "NOT PRIVATE" in page
    assert "may reveal everything" in page


@pytest.mark.parametrize("epsilon", [0.01, 1.0, 8.0])
@pytest.mark.parametrize("prior", [0.01, 0.5, 0.9])
def test_beliefs_move_by_at_most_the_factor(prior, epsilon):
    """Against the optimal attacker: randomised response reaches the bound and never exceeds it."""
    low, high = posterior(prior, epsilon, 0.0)
    truth = np.exp(epsilon) / (1 + np.exp(epsilon))
    assert high == pytest.approx(prior * truth / (prior * truth + (1 - prior) * (1 - truth)))
    assert low == pytest.approx(prior * (1 - truth) / (prior * (1 - truth) + (1 - prior) * truth))


# --- in a browser

FLAGS = [
    *(
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--disable-quic",
        "--no-first-run",
        "--disable-background-networking",
    ),
    *(
        "--disable-component-update",
        "--disable-sync",
        "--remote-debugging-pipe",
        "--hide-scrollbars",
    ),
]


class Browser:
    """Uses the DevTools protocol through two pipes, so that no driver is needed."""

    def __init__(self, program, profile):
        to_read, self._write = os.pipe()
        self._read, to_write = os.pipe()

        def wire():
            os.dup2(to_read, 3)
            os.dup2(to_write, 4)

        command = [program, *FLAGS, f"--user-data-dir={profile}", "about:blank"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        self._process = subprocess.Popen(
            command, preexec_fn=wire, pass_fds=(3, 4, to_read, to_write), **quiet
        )
        os.close(to_read)
        os.close(to_write)
        self._buffer, self._ids, self.events, self.session = b"", itertools.count(1), [], None
        (page,) = [t for t in self("Target.getTargets")["targetInfos"] if t["type"] == "page"]
        self.session = self("Target.attachToTarget", targetId=page["targetId"], flatten=True)[
            "sessionId"
        ]
        for domain in ("Page", "Runtime", "Log", "Network"):
            self(f"{domain}.enable")

    def _message(self):
        while b"\0" not in self._buffer:
            received = os.read(self._read, 1 << 20)
            assert received, "the browser has gone"
            self._buffer += received
        raw, self._buffer = self._buffer.split(b"\0", 1)
        return json.loads(raw)

    def __call__(self, method, **parameters):
        key = next(self._ids)
        message = {"id": key, "method": method, "params": parameters}
        os.write(
            self._write,
            json.dumps(message | ({"sessionId": self.session} if self.session else {})).encode()
            + b"\0",
        )
        while (answer := self._message()).get("id") != key:
            self.events.append(answer)
        assert "error" not in answer, answer
        return answer["result"]

    def open(self, path, width, dark):
        self(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=900,
            deviceScaleFactor=1,
            mobile=width < 500,
        )
        scheme = [{"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]
        self("Emulation.setEmulatedMedia", features=scheme)
        self.events.clear()
        self("Page.navigate", url=f"file://{path}")
        while not any(event.get("method") == "Page.loadEventFired" for event in self.events):
            self.events.append(self._message())

    def evaluate(self, expression):
        result = self("Runtime.evaluate", expression=expression, returnByValue=True)
        assert "exceptionDetails" not in result, result
        return result["result"].get("value")

    def press(self, key):
        self(
            "Input.dispatchKeyEvent",
            type="keyDown",
            key=key,
            code=key,
            text="\r" if key == "Enter" else "",
        )
        self("Input.dispatchKeyEvent", type="keyUp", key=key, code=key)

    def close(self):
        self._process.kill()
        self._process.wait()
        os.close(self._write)
        os.close(self._read)


@pytest.fixture(scope="module")
def browser():
    program = next(
        (p for p in map(shutil.which, ("chromium", "chromium-browser", "google-chrome")) if p), None
    )
    if program is None:
        pytest.skip("no Chromium is installed")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as profile:
        opened = Browser(program, profile)
        yield opened
        opened.close()


@pytest.mark.parametrize("dark", [False, True], ids=["light", "dark"])
@pytest.mark.parametrize("width", [1200, 390], ids=["desktop", "phone"])
def test_the_page_works_in_a_browser(browser, tmp_path, width, dark):
    for name, (model, scores) in MODELS.items():
        path = tmp_path / f"{name}.html"
        path.write_text(report_page(model, "c" * 64, scores), encoding="utf-8")
        browser.open(path, width, dark)
        methods = [event.get("method") for event in browser.events]
        assert "Runtime.exceptionThrown" not in methods
        assert "Log.entryAdded" not in methods
        requests = [
            e["params"]["request"]["url"]
            for e in browser.events
            if e.get("method") == "Network.requestWillBeSent"
        ]
        assert [url for url in requests if not url.startswith(("file://", "data:"))] == []
        assert browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), (
            "the page scrolls sideways"
        )
        sizes = browser.evaluate(
            "Array.from(document.querySelectorAll('figure svg, .budget, .forest .point')).filter(e "
            "=> !e.closest('[hidden], .more'))"
            ".map(e => e.getBoundingClientRect().width * e.getBoundingClientRect().height)"
        )
        assert len(sizes) > 10
        assert min(sizes) > 20
        assert (
            browser.evaluate("document.querySelectorAll('table.forest tr:not([hidden])').length")
            > 25
        )


def test_the_coefficients_sort_and_unfold_by_keyboard(browser, tmp_path):
    path = tmp_path / "page.html"
    model = MODELS["binary"][0]
    path.write_text(report_page(model), encoding="utf-8")
    browser.open(path, 1200, dark=False)
    seen = []
    for _ in range(20):
        browser.press("Tab")
        seen.append(
            browser.evaluate("document.activeElement.dataset.key || document.activeElement.tagName")
        )
        if seen[-1] == "value":
            break
    assert {"A", "INPUT", "BUTTON", "name", "value"} <= set(seen)
    values = (
        "Array.from(document.querySelectorAll('.forest tbody tr')).map(r => "
        "Number(r.dataset.value))"
    )
    browser.press("Enter")
    down = browser.evaluate(values)
    assert down == sorted(down, reverse=True)
    browser.press("Enter")
    assert browser.evaluate(values) == down[::-1]
    visible = (
        "Array.from(document.querySelectorAll('.forest tbody tr')).filter(r => r.offsetHeight > "
        "0).length"
    )
    assert browser.evaluate(visible) == 25
    browser.evaluate("document.querySelector('[data-more]').focus()")
    browser.press("Enter")
    assert browser.evaluate(visible) == len(model.feature_names) + 1
    browser.evaluate(
        "(e => { e.value = 'town 7'; e.dispatchEvent(new Event('input')); "
        "})(document.querySelector('input'))"
    )
    assert browser.evaluate(visible) == 1


def test_numbers_on_the_page_are_those_of_the_model():
    model = MODELS["binary"][0]
    values = {float(v) for v in re.findall(r'data-value="([^"]+)"', report_page(model))}
    assert values == {
        float(v) for v in np.append(model.estimator.coef_, model.estimator.intercept_)
    }


@pytest.mark.parametrize(("epsilon", "is_inside"), [(0.2, False), (3.0, True), (8.0, True)])
def test_labels_of_beliefs_stand_clear_of_flat_curves(epsilon, is_inside):
    """Where the band is wide its curves are flat beside the dots, so labels are inside."""
    drawn = odds_figure(epsilon, 1e-6)
    dots = [float(at) for at in re.findall(r'<circle class="dot" cx="[^"]+" cy="([^"]+)"', drawn)]
    texts = [float(at) for at in re.findall(r'class="strong" x="[^"]+" y="([^"]+)"', drawn)]
    (upper, lower), (above, below) = dots, texts
    assert (upper + 10 < above < below < lower - 10) is is_inside
