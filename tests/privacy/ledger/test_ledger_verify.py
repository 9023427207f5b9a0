"""Detection of ledgers and models that were rewritten, truncated or reset to an earlier state."""

import hashlib
import json
import os
import random
import shutil
import sqlite3
from contextlib import closing

import pytest

from _ledgers import DELTA, pay
from hushfit import Ledger, load_model
from hushfit.cli import run
from hushfit.errors import HushfitError, InvalidArgument, LedgerError
from hushfit.models._file import read_model
from hushfit.models._verify import model_problems
from hushfit.privacy.ledger._ledger_key import KEY_VARIABLE, LedgerKey
from hushfit.privacy.ledger._verify import export_anchors, head_anchor, verify, verify_ledger
from hushfit.unit import ROW_ACCOUNT, PrivacyUnit


@pytest.fixture
def path(tmp_path):
    return str(tmp_path / "ledger.db")


@pytest.fixture
def ledger(path):
    made = Ledger.create(path, "patients", 2.0, DELTA)
    for _ in range(3):
        pay(made, 0.1)
    return made


def change(path, *statements):
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        for statement in statements:
            connection.execute(statement)


def cut_off(path, number):
    """Remove the last entries and their seals."""
    change(
        path,
        *(
            f"DELETE FROM {table} WHERE number >= {number}"
            for table in ("hushfit_entries", "hushfit_seals")
        ),
    )


def rewritten(path, edit):
    """Apply ``edit`` to every entry and recompute all hashes and seals, as is possible without the
    key.
    """
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        previous = "0" * 64
        for dataset, number, body in connection.execute(
            "SELECT dataset, number, body FROM hushfit_entries ORDER BY number"
        ).fetchall():
            line = json.dumps(edit(json.loads(body)), sort_keys=True, separators=(",", ":"))
            previous = hashlib.sha256(f"{previous}\n{line}".encode()).hexdigest()
            given = (line, previous, dataset, number)
            connection.execute(
                "UPDATE hushfit_entries SET body = ?, hash = ? WHERE dataset = ? AND number = ?",
                given,
            )
            connection.execute(
                "UPDATE hushfit_seals SET seal = ? WHERE dataset = ? AND number = ?", given[1:]
            )


def larger_budget(body):
    return {**body, "epsilon": 50.0} if body["kind"] == "open" else body


# --- Copies stored elsewhere


@pytest.fixture
def anchors(ledger, path, tmp_path):
    """Anchors from an export and the head, taken after three payments."""
    export = tmp_path / "kept.jsonl"
    assert run(["ledger", "export", path, "-o", str(export)]) == 0
    return [*export_anchors(export), head_anchor(ledger.account.history()[-1].hash)]


def test_a_ledger_that_only_grew_has_what_was_kept(ledger, path, anchors):
    pay(ledger, 0.1)
    assert verify(path, anchors).sentences() == []


ATTACKS = {
    "last entries removed": lambda path, old: cut_off(path, 2),
    "older copy restored": lambda path, old: shutil.copy(old, path),
    "rewritten": lambda path, old: rewritten(path, larger_budget),
    "made again": lambda path, old: (os.remove(path), Ledger.create(path, "patients", 2.0, DELTA)),
}


@pytest.mark.parametrize("attack", ATTACKS.values(), ids=ATTACKS)
def test_what_was_kept_elsewhere_shows_what_the_ledger_alone_cannot(path, tmp_path, attack, capsys):
    ledger = Ledger.create(path, "patients", 2.0, DELTA)
    old = shutil.copy(path, tmp_path / "old.db")
    for _ in range(3):
        pay(ledger, 0.1)
    export, head = str(tmp_path / "kept.jsonl"), ledger.account.history()[-1].hash
    run(["ledger", "export", path, "-o", export])
    attack(path, old)
    assert run(["ledger", "verify", path]) == 0  # as documented
    capsys.readouterr()
    for option in (("--against", export), ("--head", head)):
        assert run(["ledger", "verify", path, *option]) == 4
        assert (
            "gone: the ledger went back to an earlier state, or was rewritten"
            in capsys.readouterr().err
        )


def test_an_export_of_another_ledger_is_named_once(ledger, path, tmp_path, anchors):
    other = str(tmp_path / "other.db")
    Ledger.create(other, "patients", 3.0, DELTA)
    (sentence,) = verify(other, anchors[:-1]).sentences()
    assert "entry 0 of 'patients'" in sentence
    assert "(and 3 more) are gone" in sentence
    assert sentence.count("of another ledger") == 1
    cut_off(path, 3)
    (sentence,) = verify(path, anchors[:-1]).sentences()
    assert sentence.startswith("entry 3 of 'patients'")
    assert "is gone" in sentence
    assert "another ledger" not in sentence


def test_heads_are_shown_for_keeping(ledger, path, capsys):
    head = ledger.account.history()[-1].hash
    assert run(["ledger", "verify", path]) == 0
    assert f"patients: 4 entries, head {head}" in capsys.readouterr().out
    assert run(["ledger", "verify", path, "--json"]) == 0
    assert json.loads(capsys.readouterr().out)["heads"] == {
        "patients": {"entries": 4, "head": head, "unit": ROW_ACCOUNT.to_dict()}
    }


def test_an_export_with_a_key_twice_is_refused(path, ledger, tmp_path):
    """Hashes are over what was read: a program that takes the first would be shown other costs."""
    place = tmp_path / "kept.jsonl"
    run(["ledger", "export", path, "-o", str(place)])
    text = place.read_text()
    place.write_text(text.replace('{"at"', '{"label": "a small one", "at"'))
    assert place.read_text() != text
    with pytest.raises(InvalidArgument, match="export"):
        export_anchors(place)


def test_what_is_no_export_and_no_hash_is_refused(tmp_path):
    for text in ("", "{}", "[1]", "x", '{"hash": 1, "dataset": "a", "number": "b"}', "[" * 100_000):
        (tmp_path / "kept.jsonl").write_text(text)
        with pytest.raises(InvalidArgument, match="export"):
            export_anchors(tmp_path / "kept.jsonl")
    with pytest.raises(InvalidArgument, match="cannot be read"):
        export_anchors(tmp_path / "none.jsonl")
    for text in ("", "abc", "G" * 64, "a" * 63):
        with pytest.raises(InvalidArgument, match="64 hexadecimal digits"):
            head_anchor(text)


def test_a_ledger_without_accounts_does_not_verify(ledger, path, capsys):
    change(path, "DELETE FROM hushfit_entries", "DELETE FROM hushfit_seals")
    assert run(["ledger", "verify", path]) == 4
    assert "no data set left" in capsys.readouterr().err


# --- A key outside the ledger


@pytest.fixture
def key(tmp_path, monkeypatch):
    place = tmp_path / "ledger.key"
    place.write_text("0123456789abcdef" * 4 + "\n")
    monkeypatch.setenv(KEY_VARIABLE, str(place))
    return place


def test_with_the_key_a_ledger_works_as_without(key, ledger, path):
    assert verify_ledger(path) == {"patients": []}
    assert pay(Ledger(path), 0.1).number == 4
    assert verify(path).unsealed == ()
    assert "0123456789abcdef" not in str(ledger.account.history())


def test_what_was_written_without_the_key_does_not_verify(key, ledger, path):
    rewritten(path, larger_budget)
    assert "wrong seal" in verify_ledger(path)["patients"][0]
    with pytest.raises(LedgerError, match="wrong seal"):
        pay(Ledger(path), 0.1)


def test_an_account_made_anew_without_the_key_does_not_verify(key, ledger, path, monkeypatch):
    """Someone without the key replaces the ledger by one with a larger budget."""
    os.remove(path)
    monkeypatch.delenv(KEY_VARIABLE)
    Ledger.create(path, "patients", 50.0, DELTA)
    monkeypatch.setenv(KEY_VARIABLE, str(key))
    assert "opened without a key" in verify_ledger(path)["patients"][0]
    with pytest.raises(LedgerError, match="opened without a key"):
        Ledger(path)


def test_another_key_is_told_from_the_right_one(key, ledger, path):
    key.write_text("f" * 64)
    assert "opened with another key" in verify_ledger(path)["patients"][0]


def test_without_the_key_one_can_read_but_not_pay(key, ledger, path, monkeypatch, capsys):
    monkeypatch.delenv(KEY_VARIABLE)
    assert len(Ledger(path).entries) == 3
    with pytest.raises(LedgerError, match=f"opened with a key.*Set {KEY_VARIABLE}"):
        pay(Ledger(path), 0.1)
    assert len(Ledger(path).entries) == 3
    assert run(["ledger", "verify", path]) == 0
    assert "seals of patients were not checked" in capsys.readouterr().err


def test_a_key_does_not_show_a_return_to_an_earlier_state(key, ledger, path, tmp_path):
    """As documented: that state was written with the key. Only a copy elsewhere shows it."""
    old, head = shutil.copy(path, tmp_path / "old.db"), pay(ledger, 0.1)
    anchor = head_anchor(ledger.account.hash_of(head))
    shutil.copy(old, path)
    assert verify(path).sentences() == []
    assert verify(path, [anchor]).lost == (anchor,)


def test_a_seal_belongs_to_its_account_and_place():
    key = LedgerKey(b"k" * 32)
    seals = {
        key.seal(dataset, number, link)
        for dataset in "ab"
        for number in (1, 11)
        for link in ("1f", "f")
    }
    assert len(seals) == 8
    assert "kkkk" not in repr(key)


@pytest.mark.parametrize(("text", "message"), [("short", "too few"), (None, "cannot be read")])
def test_a_key_that_is_none_is_refused(key, path, text, message):
    if text is None:
        key.unlink()
    else:
        key.write_text(text)
    with pytest.raises(LedgerError, match=message):
        Ledger.create(path, "patients", 2.0, DELTA)
    assert not os.path.exists(path)


# --- Models

SCHEMA = """
[target]
name = "ill"
kind = "categorical"
categories = ["no", "yes"]

[columns.age]
kind = "numeric"
low = 0
high = 100
fill = 40
"""


@pytest.fixture(scope="module")
def fitted(tmp_path_factory):
    """A folder with a ledger that has paid for two models."""
    folder = tmp_path_factory.mktemp("fitted")
    generator = random.Random(0)
    rows = [
        f"{generator.uniform(0, 100):.1f},{generator.choice(['yes', 'no'])}" for _ in range(300)
    ]
    (folder / "rows.csv").write_text("\n".join(["age,ill", *rows]) + "\n")
    (folder / "schema.toml").write_text(SCHEMA)
    run(
        [
            "ledger",
            "init",
            str(folder / "ledger.db"),
            "--dataset",
            "people",
            "--epsilon",
            "4",
            "--delta",
            "1e-5",
        ]
    )
    for name, epsilon in (("model.json", "1"), ("other.json", "2")):
        given = [
            "--schema",
            folder / "schema.toml",
            "--epsilon",
            epsilon,
            "--delta",
            "1e-5",
            "--ledger",
            folder / "ledger.db",
        ]
        assert run(["fit", *map(str, [folder / "rows.csv", *given, "-o", folder / name])]) == 0
    return folder


def forged(fitted, place, edit, base="model.json"):
    """The model with one change and a matching hash."""
    contents = json.loads((fitted / base).read_text())
    del contents["hash"]
    edit(contents)
    canonical = json.dumps(contents, sort_keys=True, separators=(",", ":"))
    contents["hash"] = hashlib.sha256(canonical.encode()).hexdigest()
    place.write_text(json.dumps(contents))
    return str(place)


def set_epsilon(contents):
    contents["guarantee"]["epsilon"] = contents["settings"]["epsilon"] = 0.001


def set_noise(contents):
    contents["guarantee"]["cost"] = {"kind": "gaussian", "noise_multiplier": 900.0, "count": 1}


def set_unit(contents):
    contents["guarantee"]["unit"] = PrivacyUnit.person(column="patient").to_dict()


def set_coefficient(contents):
    contents["coef"][0][0] += 1e-9


FORGERIES = {
    "epsilon": (set_epsilon, "what was paid for is epsilon="),
    "cost": (set_noise, "for other releases than payment 1"),
    "relation": (lambda c: c["guarantee"].update(relation="add-remove"), "for other releases"),
    "unit": (set_unit, "its guarantee protects one person"),
    "coefficient": (set_coefficient, "the ledger does not know it"),
    "note": (lambda c: c["guarantee"]["notes"].append("trust me"), "the ledger does not know it"),
    "other payment": (lambda c: c["receipt"].update(number=2), "not in the ledger any more"),
    "other hash": (lambda c: c["receipt"].update(hash="0" * 64), "not in the ledger any more"),
    "other data set": (lambda c: c["receipt"].update(dataset="staff"), "missing or broken"),
    "no receipt": (lambda c: c.update(receipt=None), "carries no receipt"),
}


@pytest.mark.parametrize(("edit", "message"), FORGERIES.values(), ids=FORGERIES)
def test_a_forged_model_does_not_verify(fitted, tmp_path, edit, message, capsys):
    place = forged(fitted, tmp_path / "forged.json", edit)
    load_model(place)  # nothing in the file itself shows it
    assert run(["ledger", "verify", str(fitted / "ledger.db"), "--model", place]) == 4
    assert message in capsys.readouterr().err


def test_genuine_models_verify(fitted):
    models = [
        part for name in ("model.json", "other.json") for part in ("--model", str(fitted / name))
    ]
    assert run(["ledger", "verify", str(fitted / "ledger.db"), *models]) == 0


def test_the_papers_of_another_payment_do_not_verify(fitted, tmp_path):
    """Receipt and guarantee of a second model that was paid for."""
    other = json.loads((fitted / "other.json").read_text())
    place = forged(
        fitted,
        tmp_path / "forged.json",
        lambda c: c.update(receipt=other["receipt"], guarantee=other["guarantee"]),
    )
    (problem,) = model_problems(place, verify(fitted / "ledger.db"))
    assert "the ledger does not know it: payment 2 led to another file" in problem


def paths_of(value, prefix=()):
    """Every place in a JSON value."""
    yield prefix
    items = (
        value.items()
        if isinstance(value, dict)
        else enumerate(value)
        if isinstance(value, list)
        else ()
    )
    for key, item in items:
        yield from paths_of(item, (*prefix, key))


ODD = (
    *(
        None,
        True,
        0,
        -1,
        1,
        3,
        0.5,
        -0.5,
        1e-300,
        1e300,
        10**18,
        10**30,
        10**400,
        "",
        "x",
        "inf",
        "nan",
        "1e999",
    ),
    *(
        "\x00",
        "\ud800",
        "x" * 5000,
        [],
        {},
        [[]],
        [None],
        {"a": 1},
        [1, "x"],
        "__RAW__1e999",
        "__RAW__NaN",
        "__RAW__-0.0",
    ),
)


def mutated(text, generator):
    """A model file with one to three odd values and a matching hash, or with damaged bytes."""
    if generator.random() < 0.2:
        raw = bytearray(text.encode())
        for _ in range(generator.randint(1, 5)):
            raw[generator.randrange(len(raw))] = generator.randrange(256)
        return bytes(raw)
    contents = json.loads(text)
    del contents["hash"]
    for _ in range(generator.randint(1, 3)):
        *parents, last = generator.choice([place for place in paths_of(contents) if place])
        holder = contents
        for key in parents:
            holder = holder[key]
        if generator.random() < 0.1:
            del holder[last]
        else:
            holder[last] = generator.choice(ODD)
    canonical = json.dumps(contents, sort_keys=True, separators=(",", ":"))
    contents["hash"] = hashlib.sha256(canonical.encode()).hexdigest()
    return json.dumps(contents).replace('"__RAW__', "").encode("utf-8", "surrogatepass")


def refusal_of(use):
    """Message of a refusal, or None; any other exception is a failure."""
    try:
        use()
    except HushfitError as error:
        return str(error)
    return None


def check_mutations(fitted, folder, count, seed):
    """A damaged model is refused with a message or works; none verifies as the genuine one."""
    genuine, verdict = (fitted / "model.json").read_text(), verify(fitted / "ledger.db")
    _, digest = read_model(fitted / "model.json")
    generator, place = random.Random(seed), folder / "mutated.json"
    outcomes = {"refused": 0, "read": 0}
    for _ in range(count):
        place.write_bytes(mutated(genuine, generator))
        refusal = refusal_of(lambda: load_model(place))
        outcomes["read" if refusal is None else "refused"] += 1
        if refusal is not None:
            assert "mutated.json" in refusal
            continue
        model, found = read_model(place)
        assert (
            model_problems(place, verdict) or found == digest
        )  # or the same contents in other bytes
        assert str(model.guarantee)
        # called at once
        assert refusal_of(lambda: model.predict({"age": ["20", "80"]})) != ""  # noqa: B023
        assert run(["report", str(place), "-o", str(folder / "page.html"), "--overwrite"]) in (0, 2)
    return outcomes


def test_damaged_models_are_refused_or_harmless(fitted, tmp_path, capsys):
    outcomes = check_mutations(fitted, tmp_path, 150, seed=0)
    assert outcomes["refused"] > 50
    assert "Unexpected" not in capsys.readouterr().err


@pytest.mark.slow
def test_two_thousand_mutations_of_a_model(fitted, tmp_path, capsys):
    outcomes = check_mutations(fitted, tmp_path, 2000, seed=1)
    assert "Unexpected" not in capsys.readouterr().err
    with capsys.disabled():
        print(f"\n2,000 mutations of a model file: {outcomes}, none verified")


@pytest.mark.parametrize("kind", [["logistic-regression"], {}, 7, None])
def test_a_kind_that_is_no_name_is_refused(fitted, tmp_path, kind):
    place = forged(fitted, tmp_path / "forged.json", lambda c: c.update(kind=kind))
    with pytest.raises(InvalidArgument, match="model file"):
        load_model(place)


@pytest.mark.parametrize("field", ["epsilon", "delta", "alpha"])
def test_a_huge_number_in_a_model_is_refused(fitted, tmp_path, field):
    place = forged(
        fitted, tmp_path / "forged.json", lambda c: c["settings"].update({field: 10**400})
    )
    with pytest.raises(InvalidArgument, match="too large a number"):
        load_model(place)


@pytest.mark.parametrize("make", [lambda: Ledger(10**400, 1e-6), lambda: Ledger(1.0, 10**400)])
def test_a_huge_number_for_a_ledger_is_refused(make):
    with pytest.raises(InvalidArgument, match="beyond the largest float"):
        make()
