"""Real runs over NVIDIA FLARE: a coordinator and four owners as processes on loopback, with mutual
TLS, and with intruders.
"""

import json
import os
import shutil
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest
from _deployed import NAMES, a_run, approve_on_disk, children_of, found, furnish, in_one_process

from hushfit.errors import InvalidArgument
from hushfit.federated import nvflare as engine
from hushfit.federated._journal import unpacked
from hushfit.federated.deployment import kits as _kits
from hushfit.federated.deployment._owner_side import outcome_path

pytestmark = pytest.mark.filterwarnings(
    "ignore::hushfit.errors.InsecureNoiseWarning",
    "ignore::hushfit.errors.WeakGuaranteeWarning",
    "ignore::DeprecationWarning",
)

PATIENCE = engine.Patience(seconds=60, attempts=6)
MOST_SECONDS = 900


def kill_with_children(process):
    """End processes by their ids, and no others."""
    for child in children_of(process):
        child.kill()
    process.kill()
    process.wait()


@pytest.fixture(scope="module")
def place(tmp_path_factory):
    """The coordinator, the owners, and two intruders that keep trying to connect: one of another
    authority, one with another's name.
    """
    folder = tmp_path_factory.mktemp("flare")
    invitation = found(folder)
    configs = {name: furnish(folder / name, name) for name in NAMES}
    processes = {"coordinator": engine.start_coordinator(folder / "fed")}
    watchdog = threading.Timer(
        MOST_SECONDS, lambda: [process.kill() for process in processes.values()]
    )  # then every test fails
    watchdog.start()
    here = SimpleNamespace(
        folder=folder,
        fed=folder / "fed",
        invitation=invitation,
        configs=configs,
        processes=processes,
    )
    try:
        for name, config in configs.items():
            processes[name] = engine.start_owner(config, folder / name / "owner.toml")
        here.stranger = stranger(here)
        processes["stranger"] = engine.start_owner(
            here.stranger, folder / "stranger" / "north" / "owner.toml"
        )
        processes["claimer"] = claimer(here)
        yield here
    finally:
        watchdog.cancel()
        for process in processes.values():
            children = children_of(process)
            engine.end_process(process, 5.0)
            for child in children:
                if child.is_running():
                    child.kill()


def stranger(here):
    """A whole kit for 'north' of another federation, at this one's address."""
    found(here.folder / "stranger", port=here.invitation.port, owners=["north"])
    return furnish(here.folder / "stranger" / "north", "north")


def claimer(here):
    """West's genuine certificate, in a process that claims to be east."""
    kit = here.folder / "claimer"
    shutil.copytree(here.configs["west"].kit, kit)
    settings = kit / "startup" / "fed_client.json"
    settings.write_text(settings.read_text().replace('"fqsn": "west"', '"fqsn": "east"'))
    seen = {
        **engine.visible_environment(),
        engine.OWNER_FILE: str(here.folder / "west" / "owner.toml"),
    }
    return engine._spawn(
        engine._OWNER_PROCESS, kit, "fed_client.json", ["uid=east", "org=east"], seen
    )


def weights(configs, run):
    found = {}
    for name, config in configs.items():
        outcome = json.loads(outcome_path(config, run).read_text())
        found[name] = unpacked(outcome["weights"]).reshape(outcome["shape"])
    return found


def openings(config, run):
    """Turns that an owner had taken at the start of each attempt."""
    lines = [json.loads(line) for line in (config.state / "events.jsonl").read_text().splitlines()]
    return [line["turns"] for line in lines if line["what"] == "open" and line["run"] == run]


def approved(place, spec):
    """A run that every owner has approved, while its process is running."""
    for name in NAMES:
        approve_on_disk(place.folder / name, spec)
    return spec


def test_the_model_is_the_one_of_the_run_in_one_process(place, tmp_path):
    spec = approved(place, a_run("plain", settings={"steps": 12}))
    progress = engine.conduct(place.fed, spec, PATIENCE)
    seconds = np.array(progress["seconds"])
    print(
        f"\n{len(seconds)} rounds of 4 owners: median {np.median(seconds):.3f} s, longest "
        f"{seconds.max():.3f} s"
    )
    expected = in_one_process(place.configs, spec, tmp_path)
    for name, w in weights(place.configs, "plain").items():
        np.testing.assert_array_equal(w, expected[name])
    assert progress["attempt"] == 1
    assert all(len(config.open_ledger().entries) == 1 for config in place.configs.values())


@pytest.mark.slow
def test_a_killed_owner_comes_back_and_the_run_goes_on(place, tmp_path):
    spec = approved(place, a_run("resumed", settings={"steps": 40}, turn_timeout=6.0))

    def strike():
        """Kill south in the middle of the run, then start it again."""
        until = time.monotonic() + 120
        while time.monotonic() < until:
            progress = engine.read_progress(place.fed, "resumed")
            if progress is not None and progress["rounds"] >= 3:
                kill_with_children(place.processes["south"])
                place.processes["south"] = engine.start_owner(
                    place.configs["south"], place.folder / "south" / "owner.toml"
                )
                return
            time.sleep(0.01)

    thread = threading.Thread(target=strike, daemon=True)
    thread.start()
    progress = engine.conduct(place.fed, spec, PATIENCE)
    thread.join()
    assert (progress["state"], progress["rounds"]) == ("finished", 40)
    assert progress["attempt"] >= 2
    taken = {name: openings(config, "resumed") for name, config in place.configs.items()}
    assert all(turns[0] == 0 and 3 <= turns[1] < 40 for turns in taken.values()), taken
    restarts = [
        dict(zip(taken, turns, strict=True))
        for turns in list(zip(*taken.values(), strict=True))[1:]
    ]
    expected = in_one_process(place.configs, spec, tmp_path, restarts)
    for name, w in weights(place.configs, "resumed").items():
        np.testing.assert_array_equal(w, expected[name])
    labels = [
        [entry.label for entry in config.open_ledger().entries] for config in place.configs.values()
    ]
    assert all(
        sum(label.startswith("federated run resumed ") for label in paid) == 1 for paid in labels
    )


def submitted(place, spec, change):
    """The end of a job after its files were changed."""
    job = engine.write_job(place.folder / "hostile", spec)
    change(job)
    until = time.monotonic() + 40
    with engine.conductor(place.fed) as session:
        number = session.submit_job(str(job))
        while time.monotonic() < until:
            if str(session.get_job_status(number)).startswith("FINISHED"):
                return json.dumps(engine.final_meta(session, number))
            time.sleep(0.3)
        session.abort_job(number)
    raise AssertionError("the job was neither refused nor ended")


def test_a_job_with_shipped_code_is_refused(place):
    marker = place.folder / "shipped"

    def ship(job):
        (job / "app" / "custom").mkdir()
        (job / "app" / "custom" / "shipped.py").write_text(f"open({str(marker)!r}, 'w').close()\n")
        config = job / "app" / "config" / "config_fed_client.json"
        config.write_text(config.read_text().replace(_kits.EXECUTOR, "shipped.Anything"))

    assert "BYOC not permitted" in submitted(place, a_run("shipped"), ship)
    assert not marker.exists()


def test_a_job_naming_another_class_is_refused(place):
    marker = place.folder / "popped"
    only_north = {
        "deploy_map": {"app": ["server", "north"]},
        "min_clients": 1,
        "mandatory_clients": ["north"],
    }

    def name_another(job):
        config = job / "app" / "config" / "config_fed_client.json"
        content = json.loads(config.read_text())
        (job / "meta.json").write_text(
            json.dumps({**json.loads((job / "meta.json").read_text()), **only_north})
        )
        content["executors"][0]["executor"] = {
            "path": "subprocess.Popen",
            "args": {"args": ["touch", str(marker)]},
        }
        config.write_text(json.dumps(content))

    status = submitted(place, a_run("popped"), name_another)
    assert "COMPLETED" not in status
    assert "it cannot take part; its own events say why" in status
    events = (place.configs["north"].state / "events.jsonl").read_text()
    assert "the job's settings are not those of a run" in events
    assert not marker.exists()


def test_the_answers_of_owners_are_awaited_after_a_job_has_failed():
    """The engine writes the status of a job before the answers to its deployment."""
    failed = {"status": "FINISHED:FAILED_TO_RUN"}
    metas = iter([failed, failed, {**failed, "job_deploy_detail": ["north: refused"]}])
    session = SimpleNamespace(get_job_meta=lambda job: next(metas))
    assert engine.final_meta(session, "job")["job_deploy_detail"] == ["north: refused"]


def test_a_run_that_nobody_approved_does_not_start_and_says_what_is_missing(place):
    spec = a_run("surprise")
    with pytest.raises(
        engine.RunStopped, match=f"it has not approved this run.*{spec.fingerprint}"
    ):
        engine.conduct(place.fed, spec, PATIENCE)
    paid = [entry.label for entry in place.configs["north"].open_ledger().entries]
    assert not any("surprise" in label for label in paid)


def found_in(words, *paths):
    """Whether a text appears in a log, now or soon."""
    until = time.monotonic() + 40
    while time.monotonic() < until:
        if any(words in path.read_text(errors="replace") for path in paths if path.exists()):
            return True
        time.sleep(0.2)
    return False


def test_an_owner_of_another_authority_never_gets_in(place):
    """Its process has been trying since the start."""
    assert "not in this federation" in engine.try_connection(place.stranger)
    assert found_in(
        "CERTIFICATE_VERIFY_FAILED",
        place.stranger.kit / "log.txt",
        place.stranger.kit / "process.txt",
    )
    shutil.copy(
        place.configs["north"].kit / "startup" / "rootCA.pem",
        place.stranger.kit / "startup" / "rootCA.pem",
    )
    assert "refused the certificate of north" in engine.try_connection(place.stranger)


def test_an_owner_cannot_speak_in_anothers_name(place):
    assert found_in(
        "authenticated as 'west' but claimed endpoint 'east'", place.fed / "coordinator" / "log.txt"
    )
    until = time.monotonic() + 40
    with engine.conductor(place.fed) as session:
        while sorted(engine.connected(session)) != sorted(NAMES):
            assert time.monotonic() < until
            time.sleep(0.2)
    # The process connected as east is east's own, not the intruder's.
    assert found_in("New client east", place.fed / "coordinator" / "log.txt")
    assert (place.fed / "coordinator" / "log.txt").read_text().count("Client: New client east") == 1


def test_an_expired_certificate_is_refused_on_both_sides(place):
    home = place.folder / "expired"
    request = _kits.request(home, place.invitation, "west").read_bytes()
    fresh = _kits.approve(place.fed / "ca", place.invitation, request, replace=True)
    _kits.install(home, place.invitation, "west", fresh)
    config = furnish(home, "west")
    assert engine.try_connection(config) is None
    (config.kit / "startup" / "client.crt").write_text(
        _kits.approve(place.fed / "ca", place.invitation, request, -2, replace=True)
    )
    assert "refused the certificate of west" in engine.try_connection(config)
    with pytest.raises(InvalidArgument, match="not valid now"):
        engine.start_owner(config, home / "owner.toml")


def test_a_second_copy_of_a_kit_is_refused_on_one_machine(place):
    kit = place.configs["north"].kit
    with (
        engine.kit_in_use(kit),
        pytest.raises(InvalidArgument, match="in use by another process"),
        engine.kit_in_use(kit),
    ):
        pass


def test_a_second_copy_on_another_machine_is_noticed(tmp_path):
    """The line that the engine wrote when a copy of south's kit connected."""
    log = tmp_path / "log.txt"
    log.write_text(
        "INFO Connection CN00001 is evicted for CN00002 from endpoint north for exceeding limit 1\n"
    )
    copies = engine._DuplicateOwners(log)
    with log.open("a") as file:
        file.write(
            "INFO Connection CN00005 is evicted for CN00012 from endpoint south for exceeding "
            "limit 1\n" * 2
        )
    assert copies.seen() == ["south"]
    assert copies.seen() == []


def test_an_owner_that_stays_away_is_dropped_only_if_that_was_said():
    reports = []
    spec = a_run()
    with pytest.raises(engine.RunStopped, match="the policy is to stop"):
        engine._dropping(spec, ["south"], engine.Patience("stop", 5.0), reports.append)
    assert engine._dropping(
        spec, ["south"], engine.Patience("go-on", 5.0), reports.append
    ).dropped == ("south",)
    assert reports == ["south did not connect within 5 s and is dropped; the rest continue"]
    with pytest.raises(engine.RunStopped, match="fewer than two owners"):
        engine._dropping(
            spec, ["south", "east", "west"], engine.Patience("go-on", 5.0), reports.append
        )
    with pytest.raises(InvalidArgument, match="'stop' or 'go-on'"):
        engine.Patience("perhaps")


def test_nobody_listening_is_told_in_words(tmp_path):
    found(tmp_path, owners=["north"])
    assert "no answer at 127.0.0.1" in engine.try_connection(furnish(tmp_path / "north", "north"))
    assert os.environ.get(engine.OWNER_FILE) is None
