"""Consent, admission of jobs, old copies of journals, and damaged files of owners and runs."""

import base64
import io
import json
import random
import re
import shutil
import zipfile
from contextlib import closing
from dataclasses import replace

import numpy as np
import pytest
from _deployed import NAMES, ROWS, SCHEMA, a_run, approve_on_disk, approving, found, furnish

from hushfit.cli.verbs.federate import read_run
from hushfit.errors import HushfitError, InvalidArgument, LedgerError, OldJournal
from hushfit.federated._journal import Journal, standing_on_disk
from hushfit.federated.deployment._envelope import Envelopes, Identity
from hushfit.federated.deployment._job_guard import (
    CLIENT_FILE,
    SERVER_FILE,
    Door,
    client_settings,
    spec_in,
)
from hushfit.federated.deployment._owner_config import OwnerConfig
from hushfit.federated.deployment._owner_side import HELLO, Events, Participant
from hushfit.federated.deployment._refusal import told_to_others
from hushfit.federated.deployment._run_spec import RunSpec

pytestmark = pytest.mark.filterwarnings(
    "ignore::hushfit.errors.InsecureNoiseWarning", "ignore::hushfit.errors.WeakGuaranteeWarning"
)

EXECUTOR = "hushfit.federated.nvflare.OwnerExecutor"
JOB = "6f1c0f54-63a5-4e0f-9a0e-0e8f5f0d0c11"


@pytest.fixture(scope="module")
def kits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kits")
    return folder, found(folder, owners=["north", "east"])


@pytest.fixture
def north(tmp_path, kits):
    folder, _ = kits
    return furnish(tmp_path / "north", "north", kit=folder / "north" / "kit")


def events_of(config):
    return [json.loads(line) for line in (config.state / "events.jsonl").read_text().splitlines()]


# Consent


def test_a_run_that_was_not_approved_is_refused_and_the_owner_reads_what_to_add(north):
    spec = a_run("unknown")
    person = Participant(north, spec.packed(), lambda *_: None)
    reply_text = person.answer("consider", {})["refused"]
    assert reply_text == (
        "it has not approved this run. Give it the run file, and ask it to approve the fingerprint."
    )
    (why,) = [event["why"] for event in events_of(north) if event["what"] == "refused"]
    assert f'add this line under [approved] in owner.toml: "unknown" = "{spec.fingerprint}"' in why
    assert "asking north for epsilon=1, delta=1e-05" in why
    assert not north.open_ledger().entries


def test_the_line_that_the_owner_is_told_lets_the_run_in(north, tmp_path):
    spec = a_run("unknown")
    approve_on_disk(tmp_path / "north", spec)
    person = Participant(
        OwnerConfig.load(tmp_path / "north" / "owner.toml"), spec.packed(), lambda *_: None
    )
    assert person.answer("consider", {})["agreed"] is True


def test_approval_covers_everything_but_how_often_it_is_tried(north):
    spec = a_run("agreed")
    config = approving(north, spec)
    for same in (
        replace(spec, attempt=7),
        replace(spec, turn_timeout=5.0),
        replace(spec, dropped=("south",)),
    ):
        config.consider(same)
    others = [
        a_run("agreed", settings={"steps": 5}),
        a_run("agreed", algorithm="ipp-admm"),
        a_run("agreed", epsilon=0.9),
        replace(spec, units={**ROWS, "east": 10}),
        replace(spec, terms={**spec.terms, "model": {**spec.terms["model"], "alpha": 0.5}}),
        a_run("another"),
    ]
    for other in others:
        with pytest.raises(InvalidArgument, match="is not approved"):
            config.consider(other)


def test_a_fingerprint_is_the_same_before_and_after_the_journey():
    spec = a_run("agreed", settings={"steps": 4, "eta": 2})
    there = RunSpec.unpacked(spec.packed())
    assert (there.fingerprint, there.attempt_fingerprint) == (
        spec.fingerprint,
        spec.attempt_fingerprint,
    )


# What errors reveal to others


def test_nothing_that_came_with_a_run_is_told_to_its_sender(north):
    marks = ["SECRET-ALGORITHM", "SECRET-SETTING", "SECRET-RUN", "SECRET-COLUMN"]
    good = a_run("agreed").to_dict()
    changes = [
        {"algorithm": marks[0]},
        {"settings": {marks[1]: 1}},
        {"run": marks[2] + "/"},
        {"network": {"names": [marks[3]], "edges": []}},
    ]
    for change in changes:
        asked = json.dumps({**good, **change}).encode()
        person = Participant(north, base64.b64encode(asked).decode(), lambda *_: None)
        reply_text = json.dumps(person.answer("consider", {}))
        assert "refused" in reply_text
        assert not any(mark in reply_text for mark in marks)


def test_a_schema_that_differs_is_told_from_the_owners_side_only(north):
    spec = a_run("agreed")
    columns = [
        {**column, "name": "SECRET"} if column["name"] == "dose" else column
        for column in _columns(spec)
    ]
    terms = json.loads(json.dumps(spec.terms))
    terms["schema"]["columns"] = (
        columns
        if isinstance(spec.terms["schema"]["columns"], list)
        else {c.pop("name"): c for c in columns}
    )
    other = replace(spec, terms=terms)
    with pytest.raises(InvalidArgument, match="SECRET") as refused:
        approving(north, other).consider(other)
    assert "SECRET" not in told_to_others(refused.value)


def _columns(spec):
    columns = spec.terms["schema"]["columns"]
    listed = (
        columns
        if isinstance(columns, list)
        else [{"name": name, **column} for name, column in columns.items()]
    )
    return json.loads(json.dumps(listed))


def test_the_place_of_a_ledger_is_not_told(north, tmp_path):
    spec = a_run("agreed")
    moved = replace(approving(north, spec), ledger="postgresql://clerk:pass@db.internal:5432/books")
    assert "internal" not in told_to_others(LedgerError(f"cannot reach {moved.ledger}"))
    (tmp_path / "north" / "ledger.db").unlink()
    person = Participant(approving(north, spec), spec.packed(), lambda *_: None)
    person._post = lambda *_: b""
    for topic in ("consider", "read", "open"):
        assert str(tmp_path) not in json.dumps(person.answer(topic, {}))
    person.close()


# Admission of jobs


def archive(files):
    made = io.BytesIO()
    with zipfile.ZipFile(made, "w") as opened:
        for name, content in files.items():
            opened.writestr(name, content)
    return made.getvalue()


def job_of(spec, **more):
    client = json.dumps(client_settings(EXECUTOR, spec.packed()))
    return archive({CLIENT_FILE: client, SERVER_FILE: "{}", **more})


def door_of(north, tmp_path, clock=lambda: 0.0, signed=lambda archive: True):
    return Door(tmp_path / "north" / "owner.toml", EXECUTOR, signed, clock)


def test_a_job_is_let_in_and_started_once(north, tmp_path):
    spec = a_run("agreed")
    approve_on_disk(tmp_path / "north", spec)
    door = door_of(north, tmp_path)
    assert not door.start(JOB)
    assert door.admit(JOB, job_of(spec), {}) is None
    assert door.start(JOB)
    assert not door.start(JOB)


def test_a_run_is_approved_without_a_restart(north, tmp_path):
    spec, door = a_run("agreed"), door_of(north, tmp_path)
    assert "has not approved" in door.admit(JOB, job_of(spec), {})
    approve_on_disk(tmp_path / "north", spec)
    assert door.admit(JOB, job_of(spec), {}) is None


def test_a_job_without_the_conductors_signature_is_refused(north, tmp_path):
    approve_on_disk(tmp_path / "north", a_run("agreed"))
    door = door_of(north, tmp_path, signed=lambda archive: False)
    assert door.admit(JOB, job_of(a_run("agreed")), {}) is not None
    assert not door.start(JOB)


def test_jobs_are_limited_to_so_many_in_an_hour(north, tmp_path):
    path = tmp_path / "north" / "owner.toml"
    path.write_text("most_jobs_per_hour = 3\n" + path.read_text())
    spec, now = a_run("agreed"), [0.0]
    approve_on_disk(tmp_path / "north", spec)
    door = door_of(north, tmp_path, clock=lambda: now[0])
    assert [door.admit(JOB, job_of(spec), {}) for _ in range(4)] == [
        None,
        None,
        None,
        "it has accepted as many jobs as it allows in an hour. Wait.",
    ]
    now[0] = 3601.0
    assert door.admit(JOB, job_of(spec), {}) is None


OTHER_FILES = [
    "config/config_fed_client.conf",
    "config/config_fed_client.yml",
    "config/config_fed_client.json.default",
    "resources.json",
]
OTHER_FILES += [
    "custom/x.py",
    "config/resources.json",
    "../x",
    "/x",
    "config/config_fed_server.conf",
    "meta.json",
]


@pytest.mark.parametrize("name", OTHER_FILES)
def test_a_job_with_any_other_file_is_refused(name):
    with pytest.raises(InvalidArgument, match="other files"):
        spec_in(job_of(a_run("agreed"), **{name: "x"}), EXECUTOR)


# Origin of requests


def test_a_question_is_taken_from_the_coordinator_only(north):
    from hushfit.federated import nvflare as engine

    executor = engine.OwnerExecutor(a_run().packed())
    executor._participant = Participant(north, a_run().packed(), lambda *_: None)
    for sender, answered in (("server", True), ("east", False), ("server2", False), (None, False)):
        packet = engine._packet(b"{}")
        packet.set_header(engine.SENDER, sender)
        reply = executor._handle_request("hushfit.consider", packet, None)
        assert (engine._opened(reply) is not None) is answered, sender
    assert (
        sum(
            "did not come from the coordinator" in event["why"]
            for event in events_of(north)
            if event["what"] == "message refused"
        )
        == 3
    )


def test_the_sender_of_a_message_is_where_it_came_from_and_not_what_it_says(monkeypatch):
    from nvflare.fuel.f3.cellnet.core_cell import Message
    from nvflare.fuel.f3.cellnet.defs import MessageHeaderKey
    from nvflare.private.fed.client.command_agent import CommandAgent

    from hushfit.federated import nvflare as engine
    from hushfit.federated.deployment import _owner_processes as _nvflare_owner

    seen = []
    monkeypatch.setattr(
        CommandAgent,
        "_aux_communication",
        lambda self, request: seen.append(request.payload.get_header(engine.SENDER)),
    )
    _nvflare_owner.name_senders()
    for origin in ("server.job", "east.job", ""):
        packet = engine._packet(b"{}")
        packet.set_header(engine.SENDER, "server")
        CommandAgent._aux_communication(
            None, Message(headers={MessageHeaderKey.ORIGIN: origin}, payload=packet)
        )
    assert seen == ["server", "east", ""]


# Journals


def turns_with(config, spec, count):
    """Take some turns without a network; the messages."""
    with closing(config.read_rows(spec)) as rows, closing(config.open_owner(spec, rows)) as owner:
        mail = {name: np.ones(3) for name in owner.seat.neighbours}
        return [
            owner.turn(number, mail if number else {}) for number in range(owner.turns_taken, count)
        ]


def test_a_restored_journal_is_refused_by_the_ledger(north, tmp_path):
    """Rounds 2 to 4 would be drawn again on one payment; the ledger knows how many releases were
    made.
    """
    spec = a_run("agreed", settings={"steps": 6})
    config = approving(north, spec)
    turns_with(config, spec, 2)
    journal = config.state / "agreed.journal"
    shutil.copy(journal, tmp_path / "backup")
    turns_with(config, spec, 5)
    saved = journal.read_bytes()
    shutil.copy(tmp_path / "backup", journal)
    with (
        closing(config.read_rows(spec)) as rows,
        pytest.raises(OldJournal, match="holds 2 releases, but the ledger has recorded 5"),
    ):
        config.open_owner(spec, rows)
    journal.write_bytes(saved)
    assert len(turns_with(config, spec, 6)) == 1
    assert len(config.open_ledger().entries) == 1


def test_two_copies_of_a_journal_do_not_both_speak(north, tmp_path):
    """As with a state folder copied to another machine: the second process sends nothing, now and
    after a restart.
    """
    spec = a_run("agreed", settings={"steps": 6})
    config = replace(approving(north, spec), insecure_seed=None)
    turns_with(config, spec, 2)
    shutil.copytree(config.state, tmp_path / "copy")
    copied = replace(config, state=tmp_path / "copy")
    turns_with(config, spec, 3)
    with pytest.raises(OldJournal, match="holds 2 releases"):
        turns_with(copied, spec, 3)
    with closing(config.read_rows(spec)) as rows, closing(config.open_owner(spec, rows)) as first:
        shutil.copytree(config.state, tmp_path / "late")
        late = replace(config, state=tmp_path / "late")
        with (
            closing(config.read_rows(spec)) as others,
            closing(late.open_owner(spec, others)) as second,
        ):
            mail = {name: np.ones(3) for name in first.seat.neighbours}
            assert first.turn(3, mail) is not None
            with pytest.raises(LedgerError, match="two processes use one payment"):
                second.turn(3, mail)
    with pytest.raises(OldJournal, match="holds other releases"):
        turns_with(late, spec, 5)
    assert len(turns_with(config, spec, 6)) == 2


def test_a_crash_between_journal_and_ledger_leaves_a_run_that_goes_on(north, monkeypatch):
    """The journal is written first, so that it is never behind the ledger after a crash."""
    from hushfit.privacy.ledger._disk_ledger import DiskAccount

    spec = a_run("agreed", settings={"steps": 4})
    config = approving(north, spec)
    turns_with(config, spec, 1)
    with monkeypatch.context() as patch:
        patch.setattr(
            DiskAccount, "record_releases", lambda *_: (_ for _ in ()).throw(OSError("gone"))
        )
        with pytest.raises(OSError, match="gone"):
            turns_with(config, spec, 2)
    with closing(config.read_rows(spec)) as rows, closing(config.open_owner(spec, rows)) as owner:
        assert len(owner._journal.releases) == 2
    assert len(turns_with(config, spec, 4)) == 3


def test_a_journal_says_how_far_it_is_without_being_opened(tmp_path):
    with_words = Journal.open("r", tmp_path, {})
    with_words.note_turn({}, np.ones(1))
    with_words.note_turn({"east": np.ones(1)}, None)
    with_words.note_turn({"west": np.ones(1)}, np.ones(1))
    for standing in (with_words.standing, standing_on_disk("r", tmp_path)):
        assert (standing.turns, dict(standing.last_received)) == (3, {"east": 0, "west": 1})
    assert standing_on_disk("never", tmp_path).turns == 0
    with_words.close()


def pair(kits, north_settings="a", east_settings="a"):
    folder, _ = kits
    me, other = (
        Identity.read(name, folder / name / "kit" / "startup") for name in ("north", "east")
    )
    return Envelopes(me, "first", 1, ("east",), settings=north_settings), Envelopes(
        other, "first", 1, ("north",), settings=east_settings
    )


def test_owners_that_were_told_different_settings_do_not_talk(kits):
    north, east = pair(kits, "a", "b")
    with pytest.raises(InvalidArgument, match="received other settings"):
        east.greeted(north.hello("east"))


def test_how_far_a_journal_is_cannot_be_changed_on_the_way(kits):
    north, east = pair(kits)
    greeting = json.loads(north.hello("east", 5, 3))
    assert (
        east.greeted(json.dumps(greeting).encode()).turns,
        east.greeted(json.dumps(greeting).encode()).heard,
    ) == (5, 3)
    for change in (
        {"turns": 4},
        {"heard": -1},
        {"to": "west"},
        {"settings": "b"},
        {"turns": True},
        {"heard": 3.0},
        {"heard": None},
    ):
        with pytest.raises(InvalidArgument):
            east.greeted(json.dumps({**greeting, **change}).encode())
    with pytest.raises(InvalidArgument, match="is for another owner"):
        east.greeted(north.hello("west"))


def test_an_owner_whose_neighbour_heard_more_than_its_journal_has_stops(north, kits):
    """North's journal is empty, and its ledger too; east has received its message in round 2."""
    spec = a_run("agreed")
    config = approving(north, spec)
    folder, _ = kits
    east = Identity.read("east", folder / "east" / "kit" / "startup")
    room = Envelopes(east, "agreed", 1, ("north",), settings=spec.attempt_fingerprint)
    person = Participant(config, spec.packed(), lambda name, *_: room.hello("north", 3, 2))
    assert "agreed" in person.answer("consider", {})
    assert "ready" in person.answer("read", {})
    assert (
        person.answer("open", {})["refused"]
        == "its journal is an old copy, with which it would draw released noise again."
    )
    assert (
        person.received(HELLO, room.hello("north", 3, 2)) != b""
    )  # it replies with its greeting, so that the other learns its position
    with pytest.raises(KeyError):
        person._envelopes.closed("east", 0, b"")  # but accepts no key
    assert not config.open_ledger().entries
    person.close()


# Limits


def test_a_flood_of_refused_messages_is_noted_once(north):
    person = Participant(north, a_run().packed(), lambda *_: None)
    for _ in range(1000):
        assert person.received("word", b"junk") == b""
    assert len(events_of(north)) == 101
    assert "not logged" in events_of(north)[-1]["why"]


def test_the_events_cannot_fill_the_disk(tmp_path, monkeypatch):
    monkeypatch.setattr("hushfit.federated.deployment._owner_side._MAX_EVENT_BYTES", 2000)
    events = Events(tmp_path)
    for number in range(200):
        events.note("refused", why="x" * 5000, number=number)
    assert sum(path.stat().st_size for path in tmp_path.iterdir()) < 8000
    found, place = events.read(10**9)
    assert found[-1]["number"] == 199
    assert events.read(place) == ([], place)


def test_deep_toml_and_long_names_are_told_in_words(tmp_path, north):
    path = tmp_path / "deep.toml"
    path.write_text("a = " + "[" * 100_000 + "]" * 100_000)
    for read in (OwnerConfig.load, read_run):
        with pytest.raises(InvalidArgument, match="nested too deeply"):
            read(path)
    with pytest.raises(InvalidArgument, match="does not name a run"):
        a_run("x" * 101)
    for change in (
        {"turn_timeout": 10**400},
        {"attempt": 10**400},
        {"settings": {"steps": 4, "eta": 10**400}},
        {"units": dict.fromkeys(NAMES, 10**400)},
    ):
        with pytest.raises(InvalidArgument):
            RunSpec.from_dict({**a_run().to_dict(), **change})


# Damaged files

RUN = (
    'name = "first"\nschema = "schema.toml"\nnetwork = "ring"\nalgorithm = "pp-admm"\nturn_timeout '
    "= 30.0\n[settings]\nsteps = 4\n"
    + "".join(
        f"[owners.{name}]\nrows = {rows}\nepsilon = 1.0\ndelta = 1e-6\n"
        for name, rows in ROWS.items()
    )
)
TOKENS = [
    "",
    "\0",
    "=",
    "[",
    "]",
    '"',
    "'",
    "\n",
    "1e999",
    "-1",
    "nan",
    "inf",
    "true",
    "[[",
    "{}",
    "../",
    "9" * 400,
    "\u202e",
    "#",
    "a.b",
    "0x",
    "é" * 50,
]
VALUE = re.compile(r'"[^"\n]*"|-?\d[\d.e-]*')
VALUES = [
    "0",
    "1",
    "-1",
    "3",
    "1e308",
    "1e-300",
    "true",
    "[]",
    "{}",
    '""',
    '"x"',
    '"north"',
    '"a/b"',
    "[1, 2]",
    '["x", "y"]',
    "9" * 30,
    "0.5",
]


def damaged(text, rng):
    """A text with some of its characters or lines lost, doubled, moved or exchanged."""
    if rng.random() < 0.5:
        places = list(VALUE.finditer(text))
        place = rng.choice(places)
        return text[: place.start()] + rng.choice(VALUES) + text[place.end() :]
    letters = list(text)
    for _ in range(rng.choice([1, 1, 1, 2, 5])):
        at = rng.randrange(len(letters) + 1)
        match rng.randrange(6):
            case 0:
                del letters[at : at + rng.randrange(1, 12)]
            case 1:
                letters.insert(at, rng.choice(TOKENS))
            case 2:
                letters[at : at + 1] = [chr(rng.randrange(1, 0x250))]
            case 3:
                lines = "".join(letters).splitlines(keepends=True)
                rng.shuffle(lines) if rng.random() < 0.2 else lines.insert(
                    rng.randrange(len(lines) + 1), rng.choice(lines or [""])
                )
                letters = list("".join(lines))
            case 4:
                letters[at : at + rng.randrange(1, 8)] = list(rng.choice(TOKENS))
            case _:
                letters = letters[:at] if rng.random() < 0.3 else letters + list(rng.choice(TOKENS))
    return "".join(letters)


def owner_files(count, tmp_path, north):
    """How many damaged owner.toml were refused and how many read; nothing else ever happens."""
    rng, path, good = (
        random.Random(13),
        tmp_path / "north" / "owner.toml",
        (tmp_path / "north" / "owner.toml").read_text(),
    )
    spec, refused, read = a_run("agreed"), 0, 0
    good += f'{spec.approval}\n[peers]\neast = "{"ab" * 32}"\n'
    before = sorted(found.name for found in (tmp_path / "north").iterdir())
    for _ in range(count):
        path.write_text(damaged(good, rng), encoding="utf-8", errors="replace")
        try:
            config = OwnerConfig.load(path)
            read += 1
            config.consider(spec)
        except HushfitError:
            refused += 1
    path.write_text(good)
    assert sorted(found.name for found in (tmp_path / "north").iterdir()) == before
    assert not north.open_ledger().entries
    return refused, read


def descriptions(count, tmp_path, north):
    """How many damaged descriptions of runs were refused by an owner that has approved the
    genuine one, and how many were the same run.
    """
    rng, spec = random.Random(14), a_run("agreed")
    text, refused, same = json.dumps(spec.to_dict()), 0, 0
    door, config = door_of(north, tmp_path), approving(north, spec)
    for number in range(count):
        changed = damaged(text, rng)
        packed = base64.b64encode(changed.encode(errors="replace")).decode()
        if number % 2:
            settings = damaged(json.dumps(client_settings(EXECUTOR, spec.packed())), rng)
            reply_text = door.admit(
                JOB,
                archive({CLIENT_FILE: settings.encode(errors="replace"), SERVER_FILE: "{}"}),
                {},
            )
            assert reply_text is not None  # nothing is approved in its file
            refused += 1
            continue
        try:
            asked = RunSpec.unpacked(packed)
            config.consider(asked)
            assert asked.fingerprint == spec.fingerprint
            same += 1
        except HushfitError:
            refused += 1
    assert not north.open_ledger().entries
    return refused, same


def run_files(count, tmp_path):
    rng, refused, read = random.Random(15), 0, 0
    (tmp_path / "schema.toml").write_text(SCHEMA)
    path = tmp_path / "run.toml"
    for _ in range(count):
        path.write_text(damaged(RUN, rng), encoding="utf-8", errors="replace")
        try:
            read_run(path)
            read += 1
        except HushfitError:
            refused += 1
    return refused, read


COUNTS = [pytest.param(60, id="some"), pytest.param(2000, id="many", marks=pytest.mark.slow)]


@pytest.mark.parametrize("count", COUNTS)
def test_damaged_owner_files_are_read_or_refused_in_words(count, tmp_path, north):
    refused, read = owner_files(count, tmp_path, north)
    print(f"\n{count} damaged owner files: {refused} refused, {read} could be read")
    assert refused > count / 4


@pytest.mark.parametrize("count", COUNTS)
def test_damaged_runs_are_refused_or_the_same_run(count, tmp_path, north):
    refused, same = descriptions(count, tmp_path, north)
    print(
        f"\n{count} damaged descriptions and jobs: {refused} refused, {same} were still the "
        "approved run"
    )
    assert refused > count / 2


@pytest.mark.parametrize("count", COUNTS)
def test_damaged_run_files_are_read_or_refused_in_words(count, tmp_path):
    refused, read = run_files(count, tmp_path)
    print(f"\n{count} damaged run files: {refused} refused, {read} could be read")
    assert refused > count / 4
