"""The verbs `federate` and `owner`: kits, refusals and what they print. The engine itself runs
in tests/federated.
"""

import json
import shutil
import time
from pathlib import Path

import pytest

from hushfit.cli import run

pytest.importorskip("nvflare", reason="NVIDIA FLARE (hushfit[federated]) cannot be imported")

OWNERS = ("north", "south")


@pytest.fixture(scope="module")
def joined(tmp_path_factory):
    """A federation of two owners that have joined, created once: keys take a while."""
    made = tmp_path_factory.mktemp("joined")
    lines = [f"federate init {made}/fed --owners {','.join(OWNERS)} --port 19999"]
    for name in OWNERS:
        join = f"federate join {made}/fed/invitation.json --name {name} --folder {made}/{name}"
        lines += [
            join,
            f"federate approve {made}/{name}/{name}.csr --folder {made}/fed -o {made}/{name}.crt",
        ]
        lines += [f"{join} --certificate {made}/{name}.crt"]
    for line in lines:
        assert run(line.split()) == 0, line
    return made


@pytest.fixture
def federation(joined, hushfit, folder):
    """The same in a separate folder, with rows, schemas and ledgers."""
    shutil.copytree(joined, folder, dirs_exist_ok=True)
    for name in OWNERS:
        for file in ("train.csv", "schema.toml"):
            shutil.copy(folder / file, folder / name / file)
        settings = folder / name / "owner.toml"
        settings.write_text(settings.read_text().replace("rows.csv", "train.csv"))
        assert (
            hushfit(
                "ledger",
                "init",
                f"{name}/ledger.db",
                "--dataset",
                name,
                "--epsilon",
                2,
                "--delta",
                1e-5,
            ).code
            == 0
        )
    return folder


def test_an_owner_joins_in_two_steps(hushfit, federation):
    from hushfit.federated.deployment._envelope import Identity
    from hushfit.federated.deployment._owner_config import OwnerConfig

    config = OwnerConfig.load(federation / "north" / "owner.toml")
    assert Identity.read("north", config.kit / "startup").name == "north"
    assert (config.name, config.ceiling.epsilon) == ("north", 1.0)
    shown = hushfit("owner", "show", "--config", "north/owner.toml")
    assert shown.code == 0
    assert "spent epsilon=0 of 2" in shown.out
    assert (
        hushfit("owner", "show", "--config", "north/owner.toml", "--json").json["spent"]["budget"]
        == 2
    )


def test_a_wrong_authority_is_noticed_before_a_key_is_made(hushfit, federation):
    result = json.loads((federation / "fed" / "invitation.json").read_text())
    assert "BEGIN CERTIFICATE" in result["authority"]
    refused = hushfit(
        "federate",
        "join",
        "fed/invitation.json",
        "--name",
        "north",
        "--folder",
        "new",
        "--authority",
        "00" * 32,
    )
    assert refused.code == 2
    assert "Do not join" in refused.err
    assert not Path("new").exists()


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("federate init fed --owners a,b", "holds a federation already"),
        ("federate init other --owners a,a", "a name twice"),
        ("federate init other --owners a,b --edge a-b", "two names with a colon"),
        ("federate init other --owners a,b --port 0", "is no port"),
        ("federate join fed/invitation.json --name west --folder west", "not invited"),
        ("federate join fed/invitation.json --name north --folder north", "has a key already"),
        ("federate join schema.toml --name north --folder x", "no invitation"),
        (
            "federate approve north/north.csr --folder fed -o again.crt",
            "somebody else may claim the name",
        ),
        ("federate approve schema.toml --folder fed -o x.crt", "no certificate request"),
        ("federate run fed run.toml", "cannot be read"),
        ("federate status north", "holds no federation"),
        ("owner run --config nothing.toml", "cannot be read"),
    ],
)
def test_mistakes_are_told_in_words(hushfit, federation, line, words):
    refused = hushfit(*line.split())
    assert refused.code == 2
    assert words in refused.err
    assert words in hushfit(*line.split(), "--json").out or line.startswith("owner")


RUN = """
name = "first"
schema = "schema.toml"
network = "ring"
[owners.north]
rows = 1500
epsilon = 1.0
delta = 1e-6
[owners.south]
rows = 1500
epsilon = 0.5
delta = 1e-6
"""


def test_a_run_file_is_read(federation):
    from hushfit.cli.verbs.federate import read_run
    from hushfit.errors import InvalidArgument

    (federation / "run.toml").write_text(RUN)
    spec = read_run("run.toml")
    assert (spec.run, spec.algorithm, spec.budgets["south"].epsilon) == ("first", "shared", 0.5)
    for change, words in (
        ('name = "first"', "needs name"),
        ("rows = 1500", "needs name"),
        ('network = "ring"', "square"),
    ):
        new = 'network = "square"' if "network" in change else ""
        (federation / "run.toml").write_text(RUN.replace(change, new))
        with pytest.raises(InvalidArgument, match=words):
            read_run("run.toml")
    (federation / "run.toml").write_text("colour = 3" + RUN)
    with pytest.raises(InvalidArgument, match="not colour"):
        read_run("run.toml")


def test_status_shows_rounds_and_who_is_silent(hushfit, federation):
    runs = federation / "fed" / "runs"
    runs.mkdir()
    progress = {
        "run": "first",
        "attempt": 2,
        "owners": list(OWNERS),
        "state": "lost",
        "rounds": 7,
        "seconds": [0.25, 0.5, 0.125],
    }
    progress |= {
        "silent": ["north"],
        "silences": {"north": 3},
        "lost": ["south"],
        "reasons": {},
        "at": time.time(),
    }
    (runs / "first.json").write_text(json.dumps(progress))
    shown = hushfit("federate", "status", "fed", "--follow")
    assert shown.code == 0
    for word in ("first", "lost", "7", "0.250", "north", "south"):
        assert word in shown.out
    assert hushfit("federate", "status", "fed", "--json").json["runs"] == [progress]


@pytest.mark.filterwarnings(
    "ignore::hushfit.errors.InsecureNoiseWarning", "ignore::hushfit.errors.WeakGuaranteeWarning"
)
def test_a_finished_run_becomes_a_model_with_its_papers(hushfit, federation):
    """Owners and clock in this process, in place of `owner run`."""
    from hushfit.cli.verbs.federate import read_run
    from hushfit.cli.verbs.owner import write_model
    from hushfit.federated.deployment._coordinator import Clock
    from hushfit.federated.deployment._owner_config import OwnerConfig
    from hushfit.federated.deployment._owner_side import Participant

    (federation / "run.toml").write_text(RUN)
    spec = read_run("run.toml")
    line = hushfit("federate", "fingerprint", "run.toml").out.splitlines()[-1]
    assert line == spec.approval
    for name in OWNERS:
        with (federation / name / "owner.toml").open("a") as file:
            file.write(line + "\n")
    configs = {name: OwnerConfig.load(federation / name / "owner.toml") for name in OWNERS}
    people = {}
    for name, config in configs.items():
        people[name] = Participant(
            config, spec.packed(), lambda to, topic, message, _: people[to].received(topic, message)
        )
    progress = Clock(
        spec,
        lambda names, topic, body, _: {n: people[n].answer(topic, body) for n in names},
        lambda _: None,
    ).lead()
    for person in people.values():
        person.close()
    assert (progress.state, progress.reasons) == ("finished", {})
    path = write_model(configs["south"], "first")
    scored = hushfit("evaluate", path, "test.csv", "--json")
    assert scored.code == 0
    assert hushfit("ledger", "verify", "south/ledger.db", "--model", path).code == 0
    model = json.loads(path.read_text())
    assert model["guarantee"]["epsilon"] == 0.5
    assert model["guarantee"]["unit"]["kind"] == "row"
    assert "first" in hushfit("owner", "show", "--config", "south/owner.toml").out
    assert not list(federation.rglob("*.part"))
