"""Real runs without an engine: owners and clock in this process, with faults and attacks."""

import json
import shutil
from dataclasses import replace
from itertools import pairwise

import numpy as np
import pytest
from _deployed import NAMES, ROWS, SCHEMA, a_run, approving, found, furnish, in_one_process

from hushfit.errors import InvalidArgument
from hushfit.federated import ALGORITHMS, Network
from hushfit.federated._journal import unpacked
from hushfit.federated.deployment import kits as _kits
from hushfit.federated.deployment._coordinator import Clock
from hushfit.federated.deployment._envelope import Envelopes, Identity
from hushfit.federated.deployment._owner_config import OwnerConfig
from hushfit.federated.deployment._owner_side import HELLO, WORD, Participant, outcome_path
from hushfit.federated.deployment._run_spec import RunSpec, checked_name, why_not_without

pytestmark = pytest.mark.filterwarnings(
    "ignore::hushfit.errors.InsecureNoiseWarning", "ignore::hushfit.errors.WeakGuaranteeWarning"
)


@pytest.fixture(scope="module")
def kits(tmp_path_factory):
    folder = tmp_path_factory.mktemp("kits")
    return folder, found(folder)


@pytest.fixture
def configs(kits, tmp_path):
    folder, _ = kits
    return {name: furnish(tmp_path / name, name, kit=folder / name / "kit") for name in NAMES}


class Room:
    """Delivers messages between participants in this process; `gone` do not answer, `meddle` may
    change messages.
    """

    def __init__(self, configs, spec, meddle=None):
        self.gone, self.meddle, self.passed = (
            set(),
            meddle or (lambda sender, to, topic, message: [message]),
            [],
        )
        self.people = {}
        for name in spec.active:
            self.people[name] = Participant(
                approving(configs[name], spec), spec.packed(), self.post_of(name)
            )

    def post_of(self, sender):
        def post(to, topic, message, seconds):
            if {sender, to} & self.gone:
                return None
            self.passed.append((sender, to, topic, message))
            replies = [
                self.people[to].received(topic, m) for m in self.meddle(sender, to, topic, message)
            ]
            return replies[0] if replies else None

        return post

    def ask(self, names, topic, body, timeout):
        return {
            name: None if name in self.gone else self.people[name].answer(topic, body)
            for name in names
        }

    def lead(self, spec, watch=lambda progress: None):
        try:
            return Clock(spec, self.ask, watch, start_timeout=0.5).lead()
        finally:
            for person in self.people.values():
                person.close()


def weights(configs, run="first"):
    found = {}
    for name, config in configs.items():
        outcome = json.loads(outcome_path(config, run).read_text())
        found[name] = unpacked(outcome["weights"]).reshape(outcome["shape"])
    return found


def refusals(config):
    lines = [json.loads(line) for line in (config.state / "events.jsonl").read_text().splitlines()]
    return [line["why"] for line in lines if line["what"] in ("refused", "message refused")]


LED = {"pp-admm": {"steps": 3}, "ipp-admm": {}, "shared": {"solver": "proximal-gd"}}


@pytest.mark.parametrize("algorithm", LED)
def test_a_led_run_is_the_run_in_one_process(configs, tmp_path, algorithm):
    spec = a_run(algorithm=algorithm, settings=LED[algorithm])
    progress = Room(configs, spec).lead(spec)
    assert (progress.state, progress.reasons) == ("finished", {})
    expected = in_one_process(configs, spec, tmp_path / "again")
    for name, w in weights(configs).items():
        np.testing.assert_array_equal(w, expected[name])
    assert all(len(config.open_ledger().entries) == 1 for config in configs.values())


def stopping_after(room, rounds, name):
    """A watch that removes an owner after some rounds."""

    def watch(progress):
        if progress.rounds >= rounds:
            room.gone.add(name)

    return watch


@pytest.mark.parametrize("algorithm", ["pp-admm", "shared"])
def test_a_run_goes_on_from_the_last_round_that_everybody_answered(configs, tmp_path, algorithm):
    settings = {"steps": 6} if algorithm == "pp-admm" else {"solver": "proximal-gd"}
    spec = a_run(algorithm=algorithm, settings=settings)
    room = Room(configs, spec)
    progress = room.lead(spec, stopping_after(room, 3, "south"))
    assert (progress.state, progress.lost) == ("lost", ["south"])
    taken = {name: person._owner.turns_taken for name, person in room.people.items()}
    before = {
        name: (config.state / "first.journal").read_text() for name, config in configs.items()
    }
    again = replace(spec, attempt=2)
    assert Room(configs, again).lead(again).state == "finished"
    expected = in_one_process(configs, spec, tmp_path / "again", [taken])
    for name, w in weights(configs).items():
        np.testing.assert_array_equal(w, expected[name])
        assert (
            (configs[name].state / "first.journal").read_text().startswith(before[name])
        )  # nothing was drawn again
    assert all(len(config.open_ledger().entries) == 1 for config in configs.values())


def test_an_old_copy_of_a_journal_is_noticed(configs):
    """It would draw released noise again; the others have recorded that it was further."""
    spec = a_run(settings={"steps": 6})
    room = Room(configs, spec)
    room.lead(spec, stopping_after(room, 4, "south"))
    journal = configs["south"].state / "first.journal"
    journal.write_text("".join(journal.read_text().splitlines(keepends=True)[:-2]))
    again = replace(spec, attempt=2)
    progress = Room(configs, again).lead(again)
    assert progress.state == "refused"
    assert "its journal is an old copy" in progress.reasons["south"]


def test_the_rest_go_on_without_an_owner_that_is_dropped(configs):
    spec = a_run()
    room = Room(configs, spec)
    room.lead(spec, stopping_after(room, 2, "south"))
    rest = replace(spec, attempt=2, dropped=("south",))
    progress = Room(configs, rest).lead(rest)
    assert progress.state == "finished"
    assert progress.owners == ["north", "east", "west"]
    assert not outcome_path(configs["south"], "first").exists()


def test_who_can_be_dropped_depends_on_network_and_algorithm():
    ring, path = a_run(), replace(a_run(), network=Network(NAMES, list(pairwise(NAMES))))
    assert why_not_without(ring, "south") is None
    assert "not connected" in why_not_without(path, "south")
    assert "fewer than two" in why_not_without(replace(ring, dropped=("north", "west")), "east")
    shared = replace(ring, algorithm="shared", settings={})
    assert "pass through north" in why_not_without(shared, "north")
    assert why_not_without(shared, "south") is None


def test_the_coordinator_sees_neither_words_nor_can_it_forge_them(configs):
    """Every message is encrypted: its numbers appear nowhere in transit, and a changed byte is
    refused.
    """
    spec = a_run()
    room = Room(configs, spec)
    assert room.lead(spec).state == "finished"
    journal = [
        json.loads(line)
        for line in (configs["north"].state / "first.journal").read_text().splitlines()
    ]
    word = unpacked(next(line["said"] for line in journal if "said" in line)).tobytes()
    envelopes = [
        message for sender, _, topic, message in room.passed if topic == WORD and sender == "north"
    ]
    assert len(envelopes) == 8
    assert all(word not in message for message in envelopes)

    def flip(sender, to, topic, message):
        return (
            [message[:-1] + bytes([message[-1] ^ 1])]
            if topic == WORD and sender == "north"
            else [message]
        )

    other = a_run("forged")
    progress = Room(configs, other, flip).lead(other)
    assert progress.state == "lost"
    assert any("was not encrypted by it" in why for why in refusals(configs["east"]))


def test_duplicates_are_harmless(configs, tmp_path):
    spec = a_run()
    progress = Room(configs, spec, lambda sender, to, topic, message: [message, message]).lead(spec)
    assert progress.state == "finished"
    for name, w in in_one_process(configs, spec, tmp_path / "again").items():
        np.testing.assert_array_equal(weights(configs)[name], w)


def met(configs, spec):
    """A room whose owners have agreed, exchanged greetings and opened."""
    room = Room(configs, spec)
    for topic in ("consider", "read", "open"):
        assert not any("refused" in reply for reply in room.ask(NAMES, topic, {}, 1.0).values())
    return room


def test_stale_early_malformed_and_oversized_messages_are_refused_without_their_content(configs):
    spec = a_run()
    room = met(configs, spec)
    east, north = room.people["east"], room.people["north"]._envelopes
    good = north.closed("east", 0, b"\x00" * 24)
    hostile = [
        north.closed("east", 40, b"\x00" * 24),
        north.closed("east", -1, b"\x00" * 24),
        north.closed("east", 0, b"\x00" * 23),
        good[:10],
        b"",
        b"\xff" * 64,
        good.replace(b"north", b"south"),
        good.replace(b'"round": 0', b'"round": 1'),
        b"SECRET" * (1 << 22),
        "text",
        None,
    ]
    for message in hostile:
        assert east.received(WORD, message) == b""
    assert east.received(WORD, good) == b"ok"
    assert east.received(WORD, good) == b"ok"
    assert east.received(WORD, north.closed("east", 0, b"\x01" * 24)) == b""
    assert len(refusals(configs["east"])) == len(hostile) + 1
    assert "SECRET" not in (configs["east"].state / "events.jsonl").read_text()
    for person in room.people.values():
        person.close()


def test_reordered_and_odd_questions_are_refused(configs):
    spec = a_run()
    room = met(configs, spec)
    north = room.people["north"]
    for body in (
        {"round": 3, "silent": []},
        {"round": "0", "silent": []},
        {"round": True, "silent": []},
        {"round": 0},
        {},
    ):
        assert "refused" in north.answer("turn", body)
    assert "refused" in north.answer("shell", {})
    assert north.answer("turn", {"round": 0, "silent": []})["silent"] is False
    assert north.answer("turn", {"round": 1, "silent": []}) == {
        "instance": north._instance,
        "missing": ["east", "west"],
    }
    for person in room.people.values():
        person.close()


def test_an_old_greeting_or_a_strangers_is_refused(configs, kits, tmp_path):
    spec = a_run()
    room = met(configs, spec)
    folder, _ = kits
    me = Identity.read("north", folder / "north" / "kit" / "startup")
    east, settings = room.people["east"], spec.attempt_fingerprint
    assert (
        east.received(HELLO, Envelopes(me, "first", 7, ("east",), settings=settings).hello("east"))
        == b""
    )  # of another attempt
    assert (
        east.received(HELLO, Envelopes(me, "other", 1, ("east",), settings=settings).hello("east"))
        == b""
    )
    found(tmp_path / "foreign", "trial", owners=["north"])
    foreign = Identity.read("north", tmp_path / "foreign" / "north" / "kit" / "startup")
    assert (
        east.received(
            HELLO, Envelopes(foreign, "first", 1, ("east",), settings=settings).hello("east")
        )
        == b""
    )
    west = Identity.read("west", folder / "west" / "kit" / "startup")
    assert (
        east.received(
            HELLO, Envelopes(west, "first", 1, ("east",), settings=settings).hello("east")
        )
        == b""
    )  # no neighbour of east
    claimed = json.loads(Envelopes(west, "first", 1, ("east",), settings=settings).hello("east"))
    claimed["certificate"] = json.loads(
        Envelopes(me, "first", 1, ("east",), settings=settings).hello("east")
    )["certificate"]
    assert (
        east.received(HELLO, json.dumps(claimed).encode()) == b""
    )  # a name with another's signature
    why = refusals(configs["east"])
    for words in (
        "old greeting",
        "not from this federation's authority",
        "no neighbour",
        "not signed with its key",
    ):
        assert any(words in reason for reason in why), words
    for person in room.people.values():
        person.close()


def test_a_pinned_fingerprint_guards_against_the_authority_itself(kits, tmp_path):
    """Whoever holds the authority can issue a second certificate for north; east has pinned the
    right one.
    """
    folder, invitation = kits
    me = Identity.read("north", folder / "north" / "kit" / "startup")
    minted = tmp_path / "minted"
    request = _kits.request(minted, invitation, "north")
    certificate = _kits.approve(
        folder / "fed" / "ca", invitation, request.read_bytes(), replace=True
    )
    _kits.install(minted, invitation, "north", certificate)
    impostor = Identity.read("north", minted / "kit" / "startup")
    east = Identity.read("east", folder / "east" / "kit" / "startup")
    pinned = Envelopes(
        east, "first", 1, ("north",), {"north": _kits.fingerprint_of(me.certificate)}
    )
    assert pinned.greeted(Envelopes(me, "first", 1, ("east",)).hello("east")).name == "north"
    with pytest.raises(InvalidArgument, match="Call north"):
        pinned.greeted(Envelopes(impostor, "first", 1, ("east",)).hello("east"))


def refused_run(configs, spec):
    progress = Room(configs, spec).lead(spec)
    assert progress.state == "refused"
    assert all(not config.open_ledger().entries for config in configs.values())  # no one paid
    return progress.reasons


def test_another_schema_is_refused_before_anybody_pays(configs, kits, tmp_path):
    folder, _ = kits
    other = SCHEMA.replace("high = 100", "high = 120")
    configs["west"] = furnish(tmp_path / "other", "west", kit=folder / "west" / "kit", schema=other)
    reasons = refused_run(configs, a_run())
    assert list(reasons) == ["west"]
    assert reasons["west"] == "its schema differs: schema.columns.age.high is 120 there."
    assert (
        "schema.columns.age.high is 120 at west and 100 at the coordinator"
        in refusals(configs["west"])[0]
    )


def test_more_than_the_ceiling_is_refused_before_anybody_pays(configs):
    reasons = refused_run(configs, a_run(epsilon=1.6))
    assert reasons["north"] == "the run asks for more than its ceiling. Ask for less."
    assert "over its ceiling of epsilon=1.5" in refusals(configs["north"])[0]


def test_a_draft_schema_is_refused(configs):
    path = configs["north"].schema
    path.write_text(path.read_text() + "confirm = true\n")
    refused_run(configs, a_run())
    assert "drafted from the rows" in refusals(configs["north"])[0]


def test_a_wrong_number_of_rows_is_refused(configs):
    reasons = refused_run(configs, replace(a_run(), units={**ROWS, "east": 10}))
    assert reasons["east"] == "it has 97 rows, and the run states another number."


def test_an_owners_paths_are_not_told_to_others(configs, tmp_path):
    (tmp_path / "east" / "rows.csv").unlink()
    reasons = refused_run(configs, a_run())
    assert reasons == {"east": "it cannot take part; its own events say why."}
    assert any("rows.csv" in why for why in refusals(configs["east"]))


def test_one_name_stands_for_one_run(configs):
    spec = a_run()
    assert Room(configs, spec).lead(spec).state == "finished"
    other = replace(spec, settings={"steps": 3}, attempt=2)
    progress = Room(configs, other).lead(other)
    assert progress.state == "refused"
    assert "described differently before" in progress.reasons["north"]


def test_a_finished_run_can_be_asked_for_again(configs):
    spec = a_run()
    assert Room(configs, spec).lead(spec).state == "finished"
    first = weights(configs)
    again = replace(spec, attempt=2)
    assert Room(configs, again).lead(again).state == "finished"
    for name, w in weights(configs).items():
        np.testing.assert_array_equal(w, first[name])


def test_two_processes_with_one_kit_are_noticed(configs):
    spec = a_run()
    room = Room(configs, spec)

    def swap(progress):
        if progress.rounds == 2:
            room.people["south"]._instance = "another"

    progress = room.lead(spec, swap)
    assert progress.state == "refused"
    assert "two processes answer as south" in progress.reasons["south"]


BAD_SPECS = {
    "algorithm='os.system'": {"algorithm": "os.system"},
    "settings of 'pp-admm' have path": {"settings": {"path": "/etc"}},
    "settings of 'pp-admm' have steps": {"settings": {"steps": [1]}},
    "does not name a run": {"run": "../../etc"},
    "it was not made by this version": {"units": 3},
    "must be whole numbers": {"units": dict.fromkeys(NAMES, -1)},
    "units names": {"units": {"north": 3}},
    "not all": {"dropped": NAMES},
    "must be positive": {"attempt": 0},
    "fingerprint": {"fingerprint": "0" * 64},
    "need a model": {"terms": {"schema": {}, "model": {"kind": "forest"}}},
    "has the entries": {"data": "/etc/passwd"},
    "format": {"format": "hushfit-run-9"},
}


@pytest.mark.parametrize(("message", "change"), BAD_SPECS.items(), ids=BAD_SPECS)
def test_what_a_coordinator_sends_is_checked(message, change):
    with pytest.raises(InvalidArgument, match=f"(?i){message}"):
        RunSpec.from_dict({**a_run().to_dict(), **change})


@pytest.mark.parametrize("text", [None, 3, "", "***", "e30=", "W10=", "A" * (1 << 21)], ids=repr)
def test_a_run_that_is_no_run_is_refused(text):
    with pytest.raises(InvalidArgument):
        RunSpec.unpacked(text)


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_every_algorithm_can_be_named(algorithm):
    assert type(a_run(algorithm=algorithm, settings={}).made_algorithm()) is type(
        ALGORITHMS[algorithm]()
    )


def test_a_run_is_read_back():
    spec = a_run(dropped=("south",), attempt=3)
    assert RunSpec.unpacked(spec.packed()).to_dict() == spec.to_dict()


@pytest.mark.parametrize(
    "name", ["", "North", "a b", "../x", "server", "coordinator", "a" * 42, 3, "1st"]
)
def test_odd_names_are_refused(name):
    with pytest.raises(InvalidArgument, match="does not name an owner"):
        checked_name(name)


def test_a_faulty_owner_file_is_refused(tmp_path):
    path = tmp_path / "owner.toml"
    good = furnish(tmp_path, "north") and path.read_text()
    for broken, words in (
        (good.replace('kit = "kit"\n', ""), "kit is missing"),
        ("colour = 3\n" + good, "colour is missing or unknown"),
        (good.replace('"kit"', "3"), "paths must be strings"),
        (good.replace("delta = 1e-5", ""), "needs epsilon and delta"),
        ("= 3", "not valid TOML"),
    ):
        path.write_text(broken)
        with pytest.raises(InvalidArgument, match=words):
            OwnerConfig.load(path)
    with pytest.raises(InvalidArgument, match="cannot be read"):
        OwnerConfig.load(tmp_path / "nothing.toml")


def test_a_name_is_approved_once(kits, tmp_path):
    """Another party's request for north is refused until north confirms it."""
    folder, invitation = kits
    claim = _kits.request(tmp_path, invitation, "north").read_bytes()
    with pytest.raises(InvalidArgument, match="somebody else may claim the name"):
        _kits.approve(folder / "fed" / "ca", invitation, claim)
    with pytest.raises(InvalidArgument, match="not invited"):
        _kits.request(tmp_path, invitation, "stranger")
    with pytest.raises(InvalidArgument, match="no certificate request"):
        _kits.approve(folder / "fed" / "ca", invitation, b"nonsense")


def test_wrong_keys_foreign_and_expired_certificates_are_refused(kits, tmp_path):
    folder, invitation = kits
    startup = tmp_path / "kit" / "startup"
    shutil.copytree(folder / "north" / "kit", tmp_path / "kit")
    shutil.copy(folder / "east" / "kit" / "startup" / "client.key", startup / "client.key")
    with pytest.raises(InvalidArgument, match="not the one of its certificate"):
        Identity.read("north", startup)
    with pytest.raises(InvalidArgument, match="names 'north', not 'east'"):
        Identity.read("east", folder / "north" / "kit" / "startup")
    other = found(tmp_path / "foreign", owners=["north"])
    with pytest.raises(InvalidArgument, match="not from this federation's authority"):
        _kits.install(
            folder / "north",
            other,
            "north",
            (folder / "north" / "kit" / "startup" / "client.crt").read_text(),
        )
    old = tmp_path / "old"
    request = _kits.request(old, invitation, "south").read_bytes()
    expired = _kits.approve(folder / "fed" / "ca", invitation, request, days=-2, replace=True)
    with pytest.raises(InvalidArgument, match="not valid now"):
        _kits.install(old, invitation, "south", expired)


def test_keys_are_for_their_user_only_and_policies_forbid_everything_else(kits):
    folder, _ = kits
    for key in [
        *folder.glob("*/kit/startup/client.key"),
        *folder.glob("fed/*/*.key"),
        *folder.glob("fed/*/startup/*.key"),
    ]:
        assert key.stat().st_mode & 0o077 == 0, key
    assert (
        len(list((folder / "fed").rglob("*.key"))) == 3
    )  # authority, coordinator, conductor: no owner's key was ever here
    local = folder / "north" / "kit" / "local"
    resources = json.loads((local / "resources.json").read_text())
    assert resources["class_list_enforcement_mode"] == "enforce"
    assert resources["class_allow_list"] == ["hushfit.federated.nvflare.OwnerExecutor"]
    assert resources["allow_log_streaming"] is False
    for rights in json.loads((local / "authorization.json").read_text())["permissions"].values():
        assert {
            rights[key]
            for key in ("byoc", "shell_commands", "operate", "view", "clone_job", "download_job")
        } == {"none"}
