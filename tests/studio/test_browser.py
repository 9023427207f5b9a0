"""The studio in headless Chromium: the whole job, wrong inputs, refresh and back."""

import os
import time
from contextlib import contextmanager

import pytest
from _studio import (
    UNTIL,
    WAIT,
    Server,
    draft_adult,
    make_browser,
    prepare,
    team_server,
    write_adult,
)
from selenium.common.exceptions import (
    NoSuchElementException,
    StaleElementReferenceException,
    TimeoutException,
)
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys
from selenium.webdriver.support.ui import Select, WebDriverWait

from hushfit import Ledger
from hushfit.data.schema import read_schema
from hushfit.privacy.ledger import issue_token

selenium = pytest.importorskip("selenium", reason="selenium is not installed (development extra)")

SHOTS = os.environ.get("HUSHFIT_SCREENSHOTS")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A table, its confirmed schema and an open account: each test can be the first one."""
    made = tmp_path_factory.mktemp("studio")
    draft_adult(made)
    Ledger.create(made / "ledger.db", "adult", 2.0, 1e-6)
    return made


@pytest.fixture(scope="module")
def server(folder):
    with Server(folder) as made:
        yield made


@pytest.fixture(scope="module")
def browser():
    with closing_browser() as made:
        yield made


class Page:
    """What a person does on a page."""

    def __init__(self, browser, server):
        self.browser, self.server = browser, server
        browser.get(server.address)

    def go(self, path):
        self.browser.get(self.server.url(path))

    def text(self):
        return self.browser.find_element(By.TAG_NAME, "body").text

    def fill(self, name, value):
        field = self.browser.find_element(By.NAME, name)
        if field.tag_name == "select":
            Select(field).select_by_value(value)
            return
        field.clear()
        field.send_keys(value)

    def press(self, label):
        buttons = self.browser.find_elements(By.TAG_NAME, "button")
        # With the keyboard: a click would wait for the page to have scrolled.
        next(b for b in buttons if b.text.startswith(label)).send_keys(Keys.ENTER)

    def follow(self, label):
        self.browser.find_element(By.LINK_TEXT, label).send_keys(Keys.ENTER)

    def wait(self, words):
        quiet = (NoSuchElementException, StaleElementReferenceException)
        waiting = WebDriverWait(self.browser, WAIT, ignored_exceptions=quiet)
        try:
            waiting.until(lambda _: words in self.text())
        except TimeoutException:
            raise AssertionError(f"{words!r} is not in: {self.text()}") from None

    def outcome(self):
        """What the page of a fit says when it has ended."""
        waiting = WebDriverWait(self.browser, WAIT, ignored_exceptions=[NoSuchElementException])
        waiting.until(lambda _: any(w in self.text() for w in ("Done.", "Refused.", "Waits for")))
        return self.text()

    def shot(self, name):
        if SHOTS:
            self.browser.save_screenshot(os.path.join(SHOTS, f"{name}.png"))


@contextmanager
def closing_browser():
    made = make_browser()
    try:
        yield made
    finally:
        made.quit()


@pytest.fixture
def page(browser, server):
    return Page(browser, server)


def test_the_whole_job_from_an_empty_folder_to_a_report(browser, tmp_path):
    folder = tmp_path / "empty"
    folder.mkdir()
    with Server(folder) as server:
        whole_job(Page(browser, server), folder, tmp_path)


def whole_job(page, folder, elsewhere):
    write_adult(elsewhere, "train")
    write_adult(elsewhere, "test", 1500)
    page.go("table")
    assert "has no table yet" in page.text()
    for name in ("test.csv", "train.csv"):
        page.fill("file", str(elsewhere / name))
        page.press("Upload")
        page.wait(f"Draft a schema of {name}")
    page.shot("table-draft")
    page.fill("target", "income")
    page.press("Draft the schema")
    page.wait("wait for confirmation")
    page.shot("table-form")
    places = {
        field.text: place
        for place, field in enumerate(page.browser.find_elements(By.TAG_NAME, "legend"))
    }
    age = places["age"]
    page.fill(f"c{age}.high", "100")
    page.fill(f"c{age}.source", "Codebook of the census, 1994")
    page.press("Tick all as confirmed")
    page.press("Save train.schema.toml")
    page.wait("Saved as train.schema.toml")
    saved = read_schema(folder / "train.schema.toml")
    assert saved.unconfirmed == ()
    assert next(c for c in saved.schema.columns if c.name == "age").high == 100
    text = (folder / "train.schema.toml").read_text()
    assert "# Source: Codebook of the census, 1994" in text
    assert (
        page.browser.find_element(By.NAME, f"c{age}.source")
        .get_attribute("value")
        .startswith("Codebook")
    )

    page.go("plan?table=train.csv")
    page.wait("Accuracy lost")
    first = page.text()
    page.browser.find_element(By.NAME, "power").send_keys(Keys.ARROW_LEFT * 10)
    WebDriverWait(page.browser, WAIT).until(lambda _: "Epsilon 0.32 at" in page.text())
    assert page.text() != first
    page.shot("plan")

    page.go("budget")
    page.fill("dataset", "adult")
    page.fill("epsilon", "2")
    page.press("Open the account")
    page.wait("sum of the ceilings")

    page.go("fit?table=train.csv")
    page.fill("held_out", "test.csv")
    page.fill("epsilon", "0.5")
    page.shot("fit")
    page.press("Review what will be spent")
    page.wait("This will be spent")
    assert "hushfit fit -o model.json train.csv" in page.text()
    assert "PrivateLogisticRegression(epsilon=0.5" in page.text()
    assert Ledger(folder / "ledger.db").entries == ()  # nothing is spent before it is confirmed
    page.shot("review")
    page.press("Spend it and fit")
    page.wait("Done. Payment 1.")
    page.shot("job")
    assert len(Ledger(folder / "ledger.db").entries) == 1
    page.follow("Open the report")
    body = page.browser.find_element(By.TAG_NAME, "body")
    WebDriverWait(page.browser, WAIT).until(lambda _: "held-out" in body.text)
    assert "epsilon" in body.text
    page.shot("report")

    page.go("budget")
    assert "Composed total after each payment" in page.text()
    page.shot("budget")
    page.go("models")
    assert "PrivateLogisticRegression" in page.text()
    page.shot("models")
    page.follow("verify")
    page.wait("It is as the ledger recorded it")


def confirmed_page(page, epsilon):
    page.go("fit?table=train.csv")
    page.fill("epsilon", epsilon)
    page.press("Review what will be spent")
    page.wait("This will be spent")


def test_refresh_and_back_never_pay_twice(page, folder):
    before = len(Ledger(folder / "ledger.db").entries)
    confirmed_page(page, "0.3")
    page.press("Spend it and fit")
    page.wait("never pays a second time")
    watched = page.browser.current_url
    page.browser.refresh()
    page.browser.back()
    page.wait("This will be spent")
    page.press("Spend it and fit")  # the form of the same review
    page.wait("never pays a second time")
    assert page.browser.current_url == watched
    page.wait(f"Done. Payment {before + 1}.")
    page.browser.refresh()
    page.wait(f"Done. Payment {before + 1}.")
    assert len(Ledger(folder / "ledger.db").entries) == before + 1


def test_two_analysts_race_for_the_last_of_a_budget(browser, tmp_path_factory):
    """Both ceilings allow it, the total allows one: the other is told so, nothing is overspent."""
    folder, elsewhere = (tmp_path_factory.mktemp(name) for name in ("race", "key"))
    with team_server(folder, elsewhere) as server, closing_browser() as other:
        pages = {"alice": Page(browser, server), "bob": Page(other, server)}
        for name, page in pages.items():
            page.fill("token", issue_token(name, UNTIL))
            page.press("Log in")
            page.wait(f"Logged in as {name}")
            page.go("fit?table=train.csv")
            page.browser.find_element(By.NAME, "accept_draft").send_keys(Keys.SPACE)
            page.fill("epsilon", "0.8")
            page.press("Review what will be spent")
            page.wait("This will be spent")
        for page in pages.values():
            page.press("Spend it and fit")
        told = {name: page.outcome() for name, page in pages.items()}
        paid = [name for name, text in told.items() if "Done." in text]
        (refused,) = set(pages) - set(paid)
        assert "Refused. Nothing was spent." in told[refused]
        assert "over the ledger's 1" in told[refused]
        ledger = Ledger(folder / "ledger.db")
        (charge,) = (e.body for e in ledger.account.history() if e.kind == "charge")
        assert [charge["user"]] == paid
        assert ledger.spent().epsilon <= 1.0


SLOW_AFTER_PAYMENT = """
import sys, time
if "fit" in sys.argv:
    from hushfit.privacy.ledger import DiskAccount
    pay = DiskAccount.append
    def append(self, decide):
        receipt = pay(self, decide)
        time.sleep(600)
        return receipt
    DiskAccount.append = append
"""


def test_a_killed_server_says_afterwards_what_was_paid(browser, tmp_path, monkeypatch):
    """Killed with its fit after the payment: the charge stays, and the page says so."""
    ledger = prepare(tmp_path)
    (tmp_path / "sitecustomize.py").write_text(SLOW_AFTER_PAYMENT)
    path = os.pathsep.join([str(tmp_path), os.environ.get("PYTHONPATH", "")])
    with monkeypatch.context() as patch:
        patch.setenv("PYTHONPATH", path)
        with Server(tmp_path) as server:
            page, jobs = Page(browser, server), []
            for epsilon in ("0.3", "0.4"):  # one is paid for, the other waits behind it
                page.go("fit?table=train.csv")
                page.browser.find_element(By.NAME, "accept_draft").send_keys(Keys.SPACE)
                page.fill("epsilon", epsilon)
                page.press("Review what will be spent")
                page.wait("This will be spent")
                page.press("Spend it and fit")
                page.wait("never pays a second time")
                jobs.append(page.browser.current_url.rpartition("/")[2])
            page.go(f"fit/jobs/{jobs[0]}")
            page.wait("Paid: payment 1")
            page.go(f"fit/jobs/{jobs[1]}")
            page.wait("1 before it. Nothing has been spent.")
    assert len(ledger.entries) == 1
    with Server(tmp_path) as server:
        page = Page(browser, server)
        page.go(f"fit/jobs/{jobs[0]}")
        page.wait("The studio was stopped during this fit. Payment 1 is recorded")
        page.shot("stopped")
        page.go(f"fit/jobs/{jobs[1]}")
        page.wait("nothing was spent")
        server.client().start_fit(jobs[0])  # the old form again
        page.go("fit")
        assert page.text().count("stopped") == 2
        assert len(ledger.entries) == 1


@pytest.mark.parametrize(
    ("field", "value", "shown"),
    [
        ("epsilon", "-1", "epsilon=-1 is not positive"),
        ("epsilon", "lots", "epsilon is 'lots', which is no number"),
        ("delta", "2", "outside (0, 1)"),
    ],
)
def test_wrong_inputs_are_told_and_cost_nothing(page, folder, field, value, shown):
    before = len(Ledger(folder / "ledger.db").entries)
    page.go("fit?table=train.csv")
    page.fill(field, value)
    page.press("Review what will be spent")
    page.wait("That did not work")
    assert shown in page.text()
    assert len(Ledger(folder / "ledger.db").entries) == before


def test_more_than_the_budget_is_refused_and_costs_nothing(page, folder):
    before = len(Ledger(folder / "ledger.db").entries)
    confirmed_page(page, "2.5")
    page.press("Spend it and fit")
    page.wait("Refused. Nothing was spent.")
    assert "over the ledger's 2" in page.text()
    page.shot("refused")
    assert len(Ledger(folder / "ledger.db").entries) == before


def test_wrong_ranges_are_told_and_nothing_is_saved(page, folder):
    before = (folder / "train.schema.toml").read_text()
    page.go("table?table=train.csv")
    names = [field.text for field in page.browser.find_elements(By.TAG_NAME, "legend")]
    place = names.index("age")
    page.fill(f"c{place}.low", "seventeen")
    page.press("Save train.schema.toml")
    page.wait("which is no number")
    [low] = page.browser.find_elements(By.NAME, f"c{place}.low")
    assert low.get_attribute("value") == "seventeen"
    page.go("table?table=train.csv")
    page.fill(f"c{place}.low", "200")
    page.press("Save train.schema.toml")
    page.wait("Nothing was saved.")
    assert (folder / "train.schema.toml").read_text() == before


def test_pages_load_nothing_from_elsewhere_and_break_no_policy(page):
    for path in ("table", "plan", "fit", "budget", "models"):
        page.go(path)
        time.sleep(0.2)
        loaded = page.browser.execute_script(
            "return performance.getEntriesByType('resource').map(e => e.name)"
        )
        assert all(name.startswith(page.server.origin) for name in loaded)
    told = [entry["message"] for entry in page.browser.get_log("browser")]
    assert not [text for text in told if "Content Security Policy" in text]


def test_everything_can_be_reached_with_the_keyboard_and_has_a_label(page):
    for path in ("table?table=train.csv", "plan", "fit?table=train.csv", "budget", "models"):
        page.go(path)
        ids = page.browser.execute_script(
            "return [...document.querySelectorAll('[id]')].map(e => e.id)"
        )
        assert len(set(ids)) == len(ids)
        unlabelled = page.browser.execute_script(
            "return [...document.querySelectorAll('input:not([type=hidden]), select, textarea')]"
            ".filter(e => !e.labels.length).map(e => e.name)"
        )
        assert unlabelled == []
        reached = page.browser.execute_script(
            "return [...document.querySelectorAll('a, button, input, select, textarea')]"
            ".filter(e => e.tabIndex < 0).length"
        )
        assert reached == 0
    page.go("plan")
    page.browser.find_element(By.TAG_NAME, "body").send_keys(Keys.TAB)
    assert page.browser.switch_to.active_element.text == "Skip to the content"


LUMINANCE = """
const parse = (c) => c.match(/[\\d.]+/g).map(Number);
const light = (c) => { const [r, g, b] = parse(c).map(v => v / 255)
  .map(v => v <= .03928 ? v / 12.92 : ((v + .055) / 1.055) ** 2.4);
  return .2126 * r + .7152 * g + .0722 * b; };
const ground = (e) => { for (; e; e = e.parentElement) {
  const c = getComputedStyle(e).backgroundColor;
  if (parse(c).length === 3 || parse(c)[3] > 0) return c; } return 'rgb(255, 255, 255)'; };
const bad = [];
const shown = 'p, a, button, label, small, th, td, dt, dd, h1, h2, li';
for (const e of document.querySelectorAll(shown)) {
  if (!e.textContent.trim() || !e.offsetParent) continue;
  const [a, b] = [light(getComputedStyle(e).color), light(ground(e))];
  const ratio = (Math.max(a, b) + .05) / (Math.min(a, b) + .05);
  if (ratio < 4.5) bad.push(e.textContent.trim().slice(0, 40) + ' ' + ratio.toFixed(2));
}
return bad;
"""


@pytest.mark.parametrize("scheme", ["light", "dark"])
@pytest.mark.parametrize("width", [1200, 375])
def test_contrast_and_width(page, scheme, width):
    """Text has a contrast of 4.5 in both schemes, and no page is wider than a phone."""
    page.browser.execute_cdp_cmd(
        "Emulation.setEmulatedMedia",
        {"features": [{"name": "prefers-color-scheme", "value": scheme}]},
    )
    size = {"width": width, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    page.browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    try:
        for path in ("table?table=train.csv", "plan", "fit?table=train.csv", "budget", "models"):
            page.go(path)
            if path == "plan":
                page.wait("Accuracy lost")
            assert page.browser.execute_script(LUMINANCE) == []
            wide = page.browser.execute_script("return document.documentElement.scrollWidth")
            assert wide <= width
            page.shot(f"{scheme}-{width}-{path.partition('?')[0]}")
    finally:
        page.browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        page.browser.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
