"""Checks that a model file is the one that its ledger recorded, at the cost that was paid."""

import os
from collections.abc import Iterator

from hushfit.models._file import read_model
from hushfit.models._model import Model
from hushfit.privacy import epsilon_of
from hushfit.privacy.ledger import RESERVED_SHARE, Entry, Verdict, unit_of_charge


def model_problems(path: str | os.PathLike[str], verdict: Verdict) -> list[str]:
    """Differences between a model file and the ledger that paid for it.

    The hash in a model file has no key: whoever changes the file can make it match. The ledger's
    entry of the model cannot be changed in this way.

    Parameters
    ----------
    path : path or str
        Of the model.
    verdict : Verdict
        About the ledger.

    Returns
    -------
    list of str
        Empty if the ledger has the payment, the model's own hash, and exactly the cost that the
        model claims.
    """
    model, digest = read_model(path)
    return [f"{os.fspath(path)}: {text}" for text in _problems(model, digest, verdict)]


def _problems(model: Model, digest: str, verdict: Verdict) -> Iterator[str]:
    receipt = model.receipt
    if receipt is None:
        yield "it carries no receipt"
        return
    if verdict.problems.get(receipt.dataset, ["missing"]):
        yield f"the data set {receipt.dataset!r} that paid for it is missing or broken"
        return
    chain = verdict.chains[receipt.dataset]
    charge = next(
        (entry for entry in chain if entry.kind == "charge" and entry.hash == receipt.hash), None
    )
    if charge is None or charge.body["receipt"] != receipt.number:
        yield f"its payment {receipt.number} is not in the ledger any more"
        return
    if digest not in _recorded(chain, receipt.number):
        yield (
            f"the ledger does not know it: payment {receipt.number} led to another file than this "
            f"one, whose hash is {digest[:12]}..."
        )
    yield from _guarantee_problems(model, charge, chain[0])


def _recorded(chain: tuple[Entry, ...], number: int) -> set[str]:
    return {
        entry.body["model"]
        for entry in chain
        if entry.kind == "model" and entry.body["receipt"] == number
    }


def _guarantee_problems(model: Model, charge: Entry, opening: Entry) -> Iterator[str]:
    """Whether the guarantee of the file is what was paid for."""
    guarantee, paid_for = model.guarantee, unit_of_charge(charge)
    if guarantee.unit != paid_for:
        yield (
            f"its guarantee protects {guarantee.unit}, but payment {charge.body['receipt']} was "
            f"for {paid_for}"
        )
    if (
        guarantee.cost.to_dict() != charge.body["cost"]
        or str(guarantee.relation) != opening.body["relation"]
    ):
        yield f"its guarantee is for other releases than payment {charge.body['receipt']} was for"
        return
    needed = epsilon_of(guarantee.cost, guarantee.delta, guarantee.relation)
    if not needed <= guarantee.epsilon * (1 + RESERVED_SHARE):
        yield (
            f"its guarantee says epsilon={guarantee.epsilon:g}, what was paid for is "
            f"epsilon={needed:g} at delta={guarantee.delta:g}"
        )
