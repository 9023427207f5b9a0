"""Run all benchmarks: ``python -m benchmarks [--quick | --full]``."""

import argparse
import sys

from benchmarks import (
    accuracy,
    baselines,
    federated,
    label,
    networks,
    papers,
    persons,
    preprocessing,
    ranking,
    regression,
    scale,
    sets,
    several_machines,
    sparse,
    speed,
    thesis,
)


def main() -> int:
    """Run everything; the number of missed goals decides the exit code."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=__doc__)
    parser.add_argument(
        "--quick", action="store_true", help="about two minutes instead of the full run"
    )
    parser.add_argument("--full", action="store_true", help="the papers' whole grids as well")
    parser.add_argument("--jobs", type=int, default=1, help="processes for the accuracy part")
    given = parser.parse_args()
    owners_missed: list[str] = []
    of_persons: list[persons.Cell] = []
    labels_missed: list[str] = []
    measured = [*speed.run(list(speed.SECTIONS), given.quick), *baselines.run_all(given.quick)]
    measured += networks.run()
    measured += scale.run(None)
    measured += several_machines.run(given.quick)
    if given.quick:
        # Five folds also here: the goals suppose four fifths of the rows.
        setup = accuracy.Setup(epsilons=(0.1, 0.8), folds=5, draws=1)
        cells = accuracy.run(["adult", "a9a", "mushrooms"], setup, given.jobs)
    else:
        cells = accuracy.run(list(sets.SETS), accuracy.Setup(), given.jobs)
        label_cells = label.run(list(label.TABLES), accuracy.Setup(draws=1))
        labels_missed = [
            f"labels alone on {c.set} at {c.epsilon:g}" for c in label_cells if c.worse
        ]
        sparse.run(["a9a", "bank"], [0.1, 0.4, 1.6], folds=2, draws=1)
        papers.run(list(papers.EXPERIMENTS), given.full, draws=5 if given.full else 1)
        owners_missed = federated.run(list(federated.PARTS), given.full)
        thesis.run(
            ["a9a", "bank", "kddcup99"],
            thesis.EPSILONS if given.full else (0.05, 0.2, 0.8),
            folds=5 if given.full else 2,
        )
        thesis.run_timings()
        preprocessing.run(list(preprocessing.RAW), folds=3, draws=2)
        of_persons = persons.run(persons.SETS, persons.EPSILONS, persons.REPEATS)
        owners_missed += ranking.run(draws=10 if given.full else 2)
        owners_missed += regression.missed(regression.run(list(regression.ALL), draws=2))
    missed = [m.name for m in measured if m.verdict == "FAIL"]
    missed += [f"{c.set} at epsilon {c.epsilon:g}" for c in cells if c.verdict == "FAIL"]
    missed += owners_missed + labels_missed
    missed += [
        f"{c.set} by person, epsilon {c.epsilon:g}" for c in of_persons if c.verdict == "FAIL"
    ]
    print(f"{len(missed)} goals missed" + (": " + "; ".join(missed) if missed else ""))
    return 1 if missed else 0


if __name__ == "__main__":
    sys.exit(main())
