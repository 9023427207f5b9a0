"""Four owners on disk, as `hushfit federate join` leaves them, for the tests of real runs."""

import csv
import socket
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("nvflare", reason="NVIDIA FLARE (hushfit[federated]) cannot be imported")

import psutil

from hushfit import Ledger
from hushfit.data.tables import parse_schema
from hushfit.federated import Network, simulate
from hushfit.federated.deployment import kits as _kits
from hushfit.federated.deployment._owner_config import OwnerConfig
from hushfit.federated.deployment._run_spec import RunSpec, terms_of
from hushfit.privacy import Budget

NAMES = ["north", "east", "south", "west"]
SCHEMA = """
unit = "person"
[target]
name = "ill"
kind = "categorical"
categories = ["yes", "no"]
[columns.age]
kind = "numeric"
low = 0
high = 100
[columns.dose]
kind = "numeric"
low = 0
high = 10
"""
ROWS = {name: 90 + 7 * place for place, name in enumerate(NAMES)}


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


def children_of(process):
    """Child processes of a process started here."""
    return psutil.Process(process.pid).children(recursive=True) if process.poll() is None else []


def found(folder, name="trial", port=None, owners=NAMES):
    """A federation with a ring of owners, and a kit for each."""
    invitation = _kits.found(
        folder / "fed", name, "127.0.0.1", port or free_port(), Network.ring(NAMES)
    )
    for owner in owners:
        request = _kits.request(folder / owner, invitation, owner)
        certificate = _kits.approve(folder / "fed" / "ca", invitation, request.read_bytes())
        _kits.install(folder / owner, invitation, owner, certificate)
    return invitation


def furnish(home, name, kit=None, seed=5, epsilon=4.0, schema=SCHEMA, more=""):
    """Rows, schema, ledger and owner.toml of one owner; returns its configuration."""
    home.mkdir(parents=True, exist_ok=True)
    rng, n = np.random.default_rng(NAMES.index(name)), ROWS[name]
    age, dose = rng.uniform(0, 100, n), rng.uniform(0, 10, n)
    ill = np.where(rng.random(n) < 1 / (1 + np.exp(-(age - 50) / 10)), "yes", "no")
    with (home / "rows.csv").open("w", newline="") as file:
        writer = csv.writer(file)
        writer.writerow(["age", "dose", "ill"])
        writer.writerows(zip(age.tolist(), dose.tolist(), ill.tolist(), strict=True))
    (home / "schema.toml").write_text(schema)
    Ledger.create(home / "ledger.db", name, epsilon, 1e-5)
    seeded = "" if seed is None else f"insecure_seed = {seed + NAMES.index(name)}\n"
    (home / "owner.toml").write_text(
        f'name = "{name}"\nkit = "{kit or "kit"}"\ndata = "rows.csv"\nschema = '
        f'"schema.toml"\nledger = "ledger.db"\ndataset = "{name}"\n'
        f'state = "state"\n{seeded}{more}\n[ceiling]\nepsilon = 1.5\ndelta = 1e-5\n[approved]\n'
    )
    return OwnerConfig.load(home / "owner.toml")


def a_run(
    run="first",
    algorithm="pp-admm",
    settings=None,
    epsilon=1.0,
    units=ROWS,
    terms=None,
    **more,
):
    return RunSpec(
        run,
        algorithm,
        {"steps": 4} if settings is None else settings,
        Network.ring(NAMES),
        units,
        dict.fromkeys(NAMES, Budget(epsilon, 1e-5)),
        terms_of(parse_schema(SCHEMA).schema) if terms is None else terms,
        **more,
    )


def approving(config, *specs):
    """The same owner with some runs approved."""
    return replace(
        config, approved={**config.approved, **{spec.run: spec.fingerprint for spec in specs}}
    )


def approve_on_disk(home, *specs):
    """The lines that an owner adds at the end of its owner.toml, under [approved]."""
    with (home / "owner.toml").open("a") as file:
        file.writelines(f"{spec.approval}\n" for spec in specs)


def in_one_process(configs, spec, folder, interruptions=()):
    """The weights of the same run in this process, with the same restarts, each given by the turns
    that every owner had taken.
    """
    ledgers = {
        name: Ledger(9.0, 1e-5, unit=config.open_ledger().unit) for name, config in configs.items()
    }
    configs = {name: approving(config, spec) for name, config in configs.items()}

    def opened():
        return {
            name: config.open_owner(
                spec, config.read_rows(spec), Path(folder) / name, ledgers[name]
            )
            for name, config in configs.items()
        }

    def close(owner):
        owner.close()
        owner.source.close()

    for taken in interruptions:
        owners = opened()
        mail = {name: {} for name in owners}
        for number in range(max(taken.values())):
            messages = {
                name: owner.turn(number, mail[name])
                for name, owner in owners.items()
                if number < taken[name]
            }
            mail = {
                name: {n: messages[n] for n in owner.seat.neighbours if messages.get(n) is not None}
                for name, owner in owners.items()
            }
        for owner in owners.values():
            close(owner)
    owners = opened()
    try:
        return simulate(list(owners.values())).weights
    finally:
        for owner in owners.values():
            close(owner)
