"""What verbs that describe a model need: the model, scores, the total of its data set, and audit
evidence. The same for models of tables, networks and rankings.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from hushfit.cli._files import TableOptions
from hushfit.cli._printing import at_terminal, reading_bar

_AUDIT_OF_NETWORKS = (
    "The queries of networks are checked and attacked by name: make audit ARGS='--only network' "
    "(docs/audit.md)."
)


@dataclass(frozen=True)
class Subject:
    """A model that is described, by functions of its kind.

    Parameters
    ----------
    model : Model or RankingModel
    digest : str
        Hash of its file.
    scores : object or None
        On held-out data, as the functions take them.
    evidence : Evidence
    page, card : callable
        Take these four.
    """

    model: Any
    digest: str
    scores: Any
    evidence: Any
    page: Any
    card: Any

    def written_page(self) -> str:
        """A page in HTML."""
        return str(self.page(self.model, self.digest, self.scores, self.evidence))

    def written_card(self) -> str:
        """A card in Markdown."""
        return str(self.card(self.model, self.digest, self.scores, self.evidence))

    @property
    def points(self) -> dict[str, Any]:
        """The points of NIST SP 800-226, as JSON."""
        from hushfit.report import evaluator_points, points_dict

        return {"nist_sp_800_226": points_dict(evaluator_points(self.model, self.evidence))}


def subject_of(
    path: str, tables: Sequence[str], options: TableOptions, ledger: str | None, as_json: bool
) -> Subject:
    """Read a model, score it on held-out tables if there are any, and look up its evidence."""
    from hushfit.models import is_network, is_ranker, ranker_json, read_model
    from hushfit.report import (
        model_card,
        network_card,
        network_page,
        ranking_card,
        ranking_page,
        report_page,
    )

    refuse_pipelines(path)
    if not tables:
        options.refuse("there is no --held-out TABLE")
    if is_ranker(path):
        from hushfit.cli._ranking import ndcg_of
        from hushfit.models import load_ranker

        ranker = load_ranker(path)
        ndcg = ndcg_of(path, tuple(tables), options) if tables else None
        digest, evidence = ranker_json(ranker)[1], _evidence(ranker, ledger)
        return Subject(ranker, digest, ndcg, evidence, ranking_page, ranking_card)
    if is_network(path):
        from hushfit.torch import read_network

        model, digest = read_network(path, described=not tables)
        scores = _scores(model, tables, options, as_json)
        evidence = _evidence(model, ledger, _AUDIT_OF_NETWORKS)
        return Subject(model, digest, scores, evidence, network_page, network_card)
    model, digest = read_model(path)
    scores = _scores(model, tables, options, as_json)
    return Subject(model, digest, scores, _evidence(model, ledger), report_page, model_card)


def refuse_pipelines(path: str) -> None:
    """Pipelines and selectors are described by their guarantee alone."""
    from hushfit.errors import InvalidArgument
    from hushfit.models import is_pipeline

    if is_pipeline(path):
        raise InvalidArgument(
            f"{path} is a pipeline or a selector, which this verb does not describe. In Python, "
            "load_model(path).guarantee has its guarantee; a last step that is saved alone is "
            "described."
        )


def _scores(model: Any, tables: Sequence[str], options: TableOptions, as_json: bool) -> Any:
    from hushfit.report import evaluate_model

    if not tables:
        return None
    found = options.tables(tables, model.schema)
    with reading_bar([table.path for table in found], at_terminal(as_json)) as watch:
        return evaluate_model(model, found, watch=watch)


def _evidence(model: Any, ledger: str | None, audit: str | None = None) -> Any:
    """The total of the model's data set, and what attacks on its algorithm measured."""
    from hushfit import Ledger
    from hushfit.audit import explain
    from hushfit.errors import InvalidArgument
    from hushfit.report import AccountTotal, Evidence

    audit = explain(model).summary if audit is None else audit
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
