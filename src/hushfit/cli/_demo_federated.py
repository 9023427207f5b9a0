"""Four hospitals fit one model over real connections on this machine: ``python -m
hushfit.cli._demo_federated FOLDER [HEART]``.

HEART is a folder with the four files of the UCI heart-disease data. Without it, the patients are
simulated.
"""

import csv
import shlex
import shutil
import socket
import subprocess
import sys
from pathlib import Path
from typing import Any

import click
import numpy as np

from hushfit.cli._app import run

EPSILON, DELTA = 2.0, 1e-4
_COMMAND = [sys.executable, "-m", "hushfit.cli._demo_federated", "--verb"]


def demo(folder: Path, heart: str | None) -> int:
    """Create a federation, join, run and compare; returns the first exit code that is not 0."""
    from hushfit.datasets import load_heart, simulate_heart

    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir(parents=True)
    hospitals = load_heart(heart) if heart else simulate_heart()
    click.echo(
        "Patients: "
        + (
            f"UCI heart disease, from {heart}"
            if heart
            else "SIMULATED; `make demo-federated HEART=folder` uses the UCI files"
        )
    )
    parts = {
        name: _split(patients, place) for place, (name, patients) in enumerate(hospitals.items())
    }
    for name, (train, test) in parts.items():
        _write(folder / name / "rows.csv", train)
        _write(folder / name / "held-out.csv", test)
    code = _prepare(folder, parts)
    if code:
        return code
    owners = {name: _owner(folder / name) for name in parts}
    try:
        code = _verb(f"federate run {folder}/federation {folder}/run.toml --patience 120")
        for process in owners.values():
            process.wait(30)
    finally:
        for process in owners.values():
            if process.poll() is None:
                process.kill()
                process.wait()
    if code == 0:
        _compare(folder, parts)
    return code


def _split(patients: Any, seed: int) -> tuple[Any, Any]:
    order = np.random.default_rng(seed).permutation(len(patients.target))
    cut = 2 * len(order) // 3
    return patients.rows(order[:cut]), patients.rows(order[cut:])


def _write(path: Path, patients: Any) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file)
        writer.writerow([*patients.columns, "disease"])
        columns = [
            [("" if cell != cell else cell) for cell in column.tolist()]
            for column in patients.columns.values()
        ]
        writer.writerows(zip(*columns, patients.target.tolist(), strict=True))


def _prepare(folder: Path, parts: dict[str, tuple[Any, Any]]) -> int:
    """All steps before the run: each line is what a person would type on the machine that it
    names.
    """
    from hushfit.cli.verbs.federate import read_run
    from hushfit.data.tables import SchemaFile, schema_to_toml
    from hushfit.datasets import HEART_SCHEMA

    schema = schema_to_toml(SchemaFile(HEART_SCHEMA))
    (folder / "schema.toml").write_text(schema, encoding="utf-8")
    owners = "".join(
        f"[owners.{n}]\nrows = {len(train.target)}\nepsilon = {EPSILON}\ndelta = {DELTA}\n"
        for n, (train, _) in parts.items()
    )
    (folder / "run.toml").write_text(
        'name = "heart"\nschema = "schema.toml"\nalgorithm = "shared"\nnetwork = '
        f'"complete"\n{owners}',
        encoding="utf-8",
    )
    federation = f"{folder}/federation"
    steps = [f"federate init {federation} --owners {','.join(parts)} --port {_free_port()}"]
    for name in parts:
        home = f"{folder}/{name}"
        joined = f"federate join {federation}/invitation.json --name {name} --folder {home}"
        steps += [
            joined,
            f"federate approve {home}/{name}.csr --folder {federation} -o {home}/{name}.crt",
        ]
        steps += [f"{joined} --certificate {home}/{name}.crt"]
        steps += [
            f"ledger init {home}/ledger.db --dataset {name} --epsilon {EPSILON} --delta {DELTA}"
        ]
    for step in steps:
        code = _verb(step)
        if code:
            return code
    for name in parts:
        (folder / name / "schema.toml").write_text(schema, encoding="utf-8")
        settings = folder / name / "owner.toml"
        text = (
            settings.read_text(encoding="utf-8")
            .replace("epsilon = 1.0", f"epsilon = {EPSILON}")
            .replace("delta = 1e-6", f"delta = {DELTA}")
        )
        # Each hospital has read run.toml, computed its fingerprint, and approves.
        settings.write_text(f"{text}{read_run(folder / 'run.toml').approval}\n", encoding="utf-8")
    return _verb(f"federate fingerprint {folder}/run.toml")


def _verb(step: str) -> int:
    click.echo(f"\n$ hushfit {step}")
    return run(shlex.split(step))


def _owner(home: Path) -> "subprocess.Popen[bytes]":
    click.echo(f"\n$ hushfit owner run --config {home}/owner.toml --once &")
    log = (home / "owner.txt").open("wb")
    with log:
        command = [*_COMMAND, "owner", "run", "--config", str(home / "owner.toml"), "--once"]
        return subprocess.Popen(command, stdout=log, stderr=subprocess.STDOUT)


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return int(probe.getsockname()[1])


def _compare(folder: Path, parts: dict[str, tuple[Any, Any]]) -> None:
    """Compare the federated model with models of pooled rows and of each hospital alone, at the
    same budget.
    """
    from hushfit.cli._printing import print_table
    from hushfit.models import load_model

    held_out = {name: test for name, (_, test) in parts.items()}
    together = load_model(folder / next(iter(parts)) / "state" / "heart.model.json")

    def accuracy(predict: Any) -> list[str]:
        right = {name: predict(test.columns) == test.target for name, test in held_out.items()}
        return [
            f"{np.mean(np.concatenate(list(right.values()))):.3f}",
            *(f"{np.mean(hits):.3f}" for hits in right.values()),
        ]

    repeats = 20
    pooled = [_fitted([train for train, _ in parts.values()], seed) for seed in range(repeats)]
    alone = {
        name: [_fitted([train], seed) for seed in range(repeats)]
        for name, (train, _) in parts.items()
    }
    rows = [["federated, this run", *accuracy(together.predict)]]
    rows += [[f"pooled (mean of {repeats})", *_mean([accuracy(model) for model in pooled])]]
    rows += [
        [f"{name} alone (mean of {repeats})", *_mean([accuracy(model) for model in models])]
        for name, models in alone.items()
    ]
    rows += [
        ["pooled, no privacy", *accuracy(_fitted([train for train, _ in parts.values()], None))]
    ]
    click.echo()
    title = f"Accuracy on held-out patients, epsilon={EPSILON:g}, delta={DELTA:g}, replace-one"
    print_table(title, ["model", "all", *held_out], rows)
    click.echo(
        f"What each hospital saw is in {folder}/*/owner.txt; `hushfit owner show --config "
        f"{folder}/cleveland/owner.toml` shows what was requested."
    )


def _mean(rows: list[list[str]]) -> list[str]:
    return [f"{value:.3f}" for value in np.mean(np.array(rows, dtype=float), axis=0)]


def _fitted(trains: list[Any], seed: int | None) -> Any:
    """A private model of some hospitals' pooled rows; without a seed, one without privacy. The seed
    makes this table reproducible.
    """
    import warnings

    from hushfit import PrivateLogisticRegression
    from hushfit.data.schema import encode
    from hushfit.datasets import HEART_SCHEMA

    table = {
        name: np.concatenate([train.columns[name] for train in trains])
        for name in trains[0].columns
    }
    target = np.concatenate([train.target for train in trains])
    epsilon = EPSILON if seed is not None else np.inf
    model = PrivateLogisticRegression(
        epsilon=epsilon, delta=DELTA, classes=["absent", "present"], random_state=seed
    )
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        model.fit(encode(table, HEART_SCHEMA)[0], target)
    return lambda columns: model.predict(encode(columns, HEART_SCHEMA)[0])


if __name__ == "__main__":
    if sys.argv[1:2] == ["--verb"]:
        sys.exit(run(sys.argv[2:]))
    sys.exit(
        demo(
            Path(sys.argv[1] if len(sys.argv) > 1 else "out/demo-federated"),
            sys.argv[2] if len(sys.argv) > 2 and sys.argv[2] else None,
        )
    )
