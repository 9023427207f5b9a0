"""What verbs that describe a model need: the model, the total of its data set, audit evidence."""

from typing import Any


def linear_model(path: str, verb: str) -> tuple[Any, str]:
    """A model of classes or numbers, and the hash of its file; other kinds are refused."""
    from hushfit.errors import InvalidArgument
    from hushfit.models import is_network, is_ranker, read_model

    if is_network(path) or is_ranker(path):
        kind = "network" if is_network(path) else "ranking model"
        raise InvalidArgument(
            f"{path} is a {kind}. `hushfit {verb}` is for models of classes and numbers; see "
            "`hushfit report`."
        )
    return read_model(path)


def evidence_of(model: Any, ledger: str | None) -> Any:
    """The total of the model's data set, and what attacks on its algorithm measured."""
    from hushfit import Ledger
    from hushfit.audit import explain
    from hushfit.errors import InvalidArgument
    from hushfit.report import AccountTotal, Evidence

    audit = explain(model).summary
    if ledger is None:
        return Evidence(audit=audit)
    if model.receipt is None:
        raise InvalidArgument(
            "--ledger was given, but the model was fitted without one. Leave --ledger out."
        )
    account = Ledger(ledger, dataset=model.receipt.dataset)
    spent, payments = account.spent(), len(account.entries)
    sums = spent.epsilon, spent.delta, account.budget.epsilon
    return Evidence(AccountTotal(model.receipt.dataset, *sums, payments), audit)
