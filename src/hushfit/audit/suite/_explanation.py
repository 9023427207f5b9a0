"""What was audited for the algorithm of a model."""

import re
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from importlib import import_module
from typing import Any

from hushfit.audit._bounds import Verdict
from hushfit.audit.attacks import (
    RANKING_TARGETS,
    RELATIONS,
    SEARCHES,
    TARGETS,
    attack_on,
    first_proved,
)
from hushfit.audit.checks import example_queries, list_examples
from hushfit.audit.suite._results import measured_for
from hushfit.models import Model, RankingModel
from hushfit.privacy import Guarantee, Relation
from hushfit.solvers import SOLVERS

# Queries that are attacked by themselves, and the names of their targets.
_ATTACKED_AS = {
    "ColumnHistogram": "quantiles",
    "Vocabulary": "vocabulary",
    "MarginHistogram": "recalibrated",
}
# Name of the one release of a search.
_SEARCHED = "best of a random number of trials"


@dataclass(frozen=True)
class Explanation:
    """What was audited for a model's algorithm.

    Parameters
    ----------
    summary : str
    releases : tuple of (release, query, proof, checks)
    measured : tuple of dict
        Attacks on the algorithm, those under the model's own adjacency relation first.
    """

    summary: str
    releases: tuple[tuple[str, str, str, str], ...]
    measured: tuple[dict[str, Any], ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        return asdict(self)


def explain(model: Model | RankingModel) -> Explanation:
    """State what was checked about the algorithm of a model.

    Parameters
    ----------
    model : Model or RankingModel

    Returns
    -------
    Explanation
    """
    guarantee = model.guarantee
    # A part of a pipeline prefixes its releases with its own name.
    made = {(release.name.rpartition(": ")[2], release.query) for release in guarantee.releases}
    attacked = (
        RANKING_TARGETS
        if isinstance(model, RankingModel)
        else {name: name for name in SOLVERS if name in TARGETS}
    )
    names = _algorithms_of(getattr(model.estimator, "solver", "auto"), made, attacked)
    lines = sorted(
        (line for name in names for line in measured_for(name)),
        key=lambda line: line["relation"] != str(guarantee.relation),
    )
    releases = tuple(
        (
            f"{release.count} x {release.name}",
            release.query,
            proof_of(release.query, release.name),
            _checks_of(release.query, release.name),
        )
        for release in guarantee.releases
    )
    return Explanation(_summary(guarantee, names, lines), releases, tuple(lines))


def _summary(guarantee: Guarantee, names: list[str], lines: list[dict[str, Any]]) -> str:
    if guarantee.nonprivate:
        return "The model has no guarantee (epsilon is infinite), so there is nothing to audit."
    if not lines:
        return (
            "No attack is stored for this combination of releases. Its queries have proofs and "
            "checks, which `hushfit audit MODEL` lists."
        )
    own = [line["ratio"] for line in lines if line["relation"] == str(guarantee.relation)]
    broken = [line for line in lines if line["verdict"] == str(Verdict.VIOLATED)]
    best = (
        f"The best attack under {guarantee.relation} measured {max(own):.0%} of the claim; "
        if own
        else ""
    )
    return (
        f"Guarantee: epsilon {guarantee.epsilon:.4g} at delta {guarantee.delta:.3g}, "
        f"{guarantee.relation}. The algorithm ({', '.join(names)}) was "
        f"attacked on artificial tables made to attain its accounted epsilon. "
        + best
        + (
            f"{len(broken)} of {len(lines)} attacks broke the claim."
            if broken
            else f"none of {len(lines)} attacks broke it."
        )
        + " The model itself was not attacked: that would need its rows."
    )


def _algorithms_of(
    solver: Any, made: set[tuple[str, str]], attacked: Mapping[str, str]
) -> list[str]:
    """Names of the attacked targets that match a model's releases; ``attacked`` has those of the
    solvers that the model could have been fitted with.
    """
    queries = {query for _, query in made}
    extra = [name for query, name in _ATTACKED_AS.items() if query in queries]
    if any(name == _SEARCHED for name, _ in made):
        extra += list(SEARCHES)
    if isinstance(solver, str) and (solver in attacked or solver in TARGETS):
        return [attacked.get(solver, solver), *extra]
    found = []
    for name in attacked.values():
        relation = first_proved(name)
        attack = attack_on(name, relation)
        if {
            (part.name, part.query.__name__) for part in attack.solver.plan(attack.problem).parts
        } <= made:
            found.append(name)
    # A second moment identifies an algorithm better than a gradient, which many release.
    return [*found[:2], *extra]


def proof_of(query: str, release: str = "") -> str:
    """The page of docs/proofs that the query's module cites, or the page of model selection."""
    kind = getattr(import_module("hushfit.release"), query, None)
    module = (
        "hushfit.model_selection"
        if release.rpartition(": ")[2] == _SEARCHED
        else getattr(kind, "__module__", None)
    )
    text = (import_module(module).__doc__ or "") if module is not None else ""
    cited = re.search(r"docs/proofs/([\w{},]+)\.md", text)
    return "" if cited is None else f"docs/proofs/{cited.group(1)}.md"


def _checks_of(query: str, release: str) -> str:
    if release.rpartition(": ")[2] == _SEARCHED:
        return (
            "exact distribution of the best of several trials; one payment, of the quoted cost; "
            "side channels"
        )
    fuzzed = any(
        type(example.query).__name__ == query
        for relation in (*RELATIONS, Relation.LABEL)
        for example in example_queries(relation).values()
    ) or any(
        type(example.make(example.problem)).__name__ == query
        for _, example in list_examples().values()
    )
    return (
        "sensitivity by hill climbing; " if fuzzed else ""
    ) + "distribution, scale and freshness of noise; replay from releases; side channels"
