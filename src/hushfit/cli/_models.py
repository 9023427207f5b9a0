"""From the options of ``hushfit fit`` to an estimator: by the kind of target, and by name."""

from dataclasses import dataclass
from typing import Any, Final

from hushfit.cli._printing import at_terminal

# The default model for each kind of target, and what else can be fitted to it.
BY_TARGET: Final = {
    "categorical": ("logistic", "svm", "mlp"),
    "numeric": ("linear", "ridge", "lasso", "elasticnet", "huber"),
    "ordinal": ("linear", "ridge", "lasso", "elasticnet", "huber"),
    "count": ("poisson",),
}
MODELS: Final = tuple(dict.fromkeys(name for names in BY_TARGET.values() for name in names))
# Penalties by name, and those whose structure comes from the schema or a file.
_BY_NAME: Final = (
    *("l1", "l2", "elasticnet", "scad", "mcp", "l1/2", "fused", "total-variation", "nuclear"),
    "nonnegative",
)
PENALTIES: Final = ("none", *_BY_NAME, "group", "sparse-group", "graph")
_TARGETS_IN_WORDS: Final = {
    "categorical": "classes",
    "numeric": "numbers",
    "ordinal": "grades",
    "count": "counts",
}
# Models whose alpha is chosen from releases unless it is given.
_WITH_ALPHA: Final = ("ridge", "lasso", "elasticnet", "huber", "poisson")
# Models that take no feature map: they choose columns one by one.
_OF_SINGLE_COLUMNS: Final = ("lasso", "elasticnet")
_USUAL_ALPHA: Final = 1e-4


@dataclass(frozen=True)
class FitOptions:
    """The options of a fit that say what to fit.

    Parameters
    ----------
    given : dict
        All options, by name.
    schema : Schema
    """

    given: dict[str, Any]
    schema: Any

    @property
    def classes(self) -> bool:
        """Whether the target is one of several classes."""
        return bool(self.schema.target.kind == "categorical")

    @property
    def model(self) -> str:
        """The name of the model: as given, or the default for the target."""
        from hushfit.errors import InvalidArgument

        target = self.schema.target
        known, chosen = BY_TARGET[target.kind], self.given["model"]
        if chosen is None:
            return known[0]
        if chosen not in known:
            what = _TARGETS_IN_WORDS[target.kind]
            other = next(kind for kind, names in BY_TARGET.items() if chosen in names)
            raise InvalidArgument(
                f"--model {chosen} is not for the target {target.name!r}, which the schema "
                f"describes as {what} (kind = {target.kind!r}). Nothing was spent. Use --model "
                f"{' or '.join(known)}, or describe the target as kind = {other!r}."
            )
        return str(chosen)

    def estimator(self) -> Any:
        """The estimator, not fitted."""
        from hushfit import Budget

        Budget(self.given["epsilon"], self.given["delta"])  # refused before a large file is read
        return self._classifier() if self.classes else self._regressor()

    @property
    def _common(self) -> dict[str, Any]:
        given = self.given
        return {
            **{name: given[name] for name in ("epsilon", "delta", "adjacency", "solver")},
            "person_weight": self.schema.privacy_unit.weighting,
            "rows_per_person": self.schema.rows_per_person,
            "random_state": given["seed"],
            "verbose": int(at_terminal(given["as_json"])),
        }

    def _classifier(self) -> Any:
        from hushfit import PrivateLinearSVC, PrivateLogisticRegression

        alpha = self._alpha(_USUAL_ALPHA)
        kind = {"logistic": PrivateLogisticRegression, "svm": PrivateLinearSVC}[self.model]
        settings = {
            **self._common,
            "penalty": self._penalty(alpha),
            "alpha": alpha,
            "l1_ratio": self.given["l1_ratio"],
            "features": self.features(),
            "threshold": _threshold(self.given["threshold"]),
        }
        return kind(**{**settings, **self._graph_settings()})

    def _penalty(self, alpha: float) -> Any:
        """The penalty of classes: a name, or an object for the columns of the schema."""
        from hushfit.errors import InvalidArgument
        from hushfit.penalties import GroupLasso, SparseGroup

        name = self.given["penalty"]
        if name in ("group", "sparse-group"):
            if self.schema.features != "linear":
                raise InvalidArgument(
                    f"--penalty {name} groups the features of a column, and with --features "
                    f"{self.schema.features} they are others. Nothing was spent. Use one of them."
                )
            groups = self.schema.groups
            if name == "group":
                return GroupLasso(alpha, groups)
            return SparseGroup(alpha, groups, self.given["l1_ratio"])
        return {"none": None, "graph": "l1"}.get(name, name)

    def _graph_settings(self) -> dict[str, Any]:
        """What a graph changes: differences along its edges are penalised, by ADMM."""
        from hushfit.errors import InvalidArgument
        from hushfit.solvers import DPSADMM, PublicGraph

        path, wanted = self.given["graph_path"], self.given["penalty"] == "graph"
        if wanted is not (path is not None):
            raise InvalidArgument("--penalty graph and --graph FILE belong together. Give both.")
        if not wanted:
            return {}
        if self.given["solver"] != "auto" or self.schema.features != "linear":
            raise InvalidArgument(
                "--penalty graph has its own solver, dp-sadmm, and is for --features linear. "
                "Nothing was spent. Leave the others out."
            )
        return {"solver": PublicGraph(DPSADMM(), read_edges(path, self.schema.feature_names))}

    def _regressor(self) -> Any:
        import hushfit

        name, target = self.model, self.schema.target
        self._refuse_options_of_classifiers()
        features = self.features()
        own: dict[str, Any] = {"alpha": self._alpha("auto")} if name in _WITH_ALPHA else {}
        if name not in _OF_SINGLE_COLUMNS:
            own["features"] = features
        if name == "poisson":
            return hushfit.PrivatePoissonRegressor(target.high, **self._common, **own)
        own["target_bounds"] = (target.low, target.high)
        if name == "elasticnet":
            own["l1_ratio"] = self.given["l1_ratio"]
        kind = {
            "linear": hushfit.PrivateLinearRegression,
            "ridge": hushfit.PrivateRidge,
            "lasso": hushfit.PrivateLasso,
            "elasticnet": hushfit.PrivateElasticNet,
            "huber": hushfit.PrivateHuberRegressor,
        }[name]
        return kind(**self._common, **own)

    def _refuse_options_of_classifiers(self) -> None:
        from hushfit.errors import InvalidArgument

        penalty = self.given["penalty"]
        if penalty != "none":
            named = {"l1": "lasso", "l2": "ridge", "elasticnet": "elasticnet"}.get(penalty)
            fits = named in BY_TARGET[self.schema.target.kind]
            remedy = f"Use --model {named}" if fits else "Leave it out"
            raise InvalidArgument(
                f"--penalty {penalty} is for classes. Nothing was spent. {remedy}."
            )
        if self.model == "linear" and self.given["alpha"] is not None:
            raise InvalidArgument(
                "--alpha is the weight of a penalty, and --model linear has none. Nothing was "
                "spent. Use --model ridge, or leave --alpha out."
            )

    def _alpha(self, default: Any) -> Any:
        """The weight of the penalty: a number, or how it is chosen."""
        from hushfit.errors import InvalidArgument

        text = self.given["alpha"]
        if text is None:
            return default
        if text in ("auto", "select") and default == "auto":
            return text
        try:
            return float(text)
        except ValueError:
            choice = ", auto, or (lasso, elasticnet) select" if default == "auto" else ""
            raise InvalidArgument(f"--alpha {text} is not a number{choice}.") from None

    def features(self) -> Any:
        """What the model is to be linear in: by the options, or else by the schema."""
        from hushfit.errors import InvalidArgument
        from hushfit.features import AdditiveFeatures

        given, schema = self.given, self.schema
        chosen, shaped = schema.features, given["monotone"] or given["smoothness"]
        if chosen != "linear" and self.model in _OF_SINGLE_COLUMNS:
            raise InvalidArgument(
                f"--model {self.model} chooses single columns, and with --features {chosen} those "
                "of a number mean nothing by themselves. Nothing was spent. Use --model linear, or "
                "leave --features out of the options and of the schema."
            )
        if chosen != "additive":
            if shaped:
                raise InvalidArgument(
                    "--monotone and --smoothness are for additive models. Nothing was spent. Give "
                    "--features additive too."
                )
            return chosen
        settings = AdditiveFeatures(
            monotone=dict(map(_direction, given["monotone"])), smoothness=given["smoothness"]
        )
        settings.directions(schema.inputs)  # refuses names that are no columns
        return settings if shaped else chosen


def _threshold(given: str | None) -> Any:
    """A number if it is one; the estimator refuses what is none."""
    try:
        return None if given is None else float(given)
    except ValueError:
        return given


def _direction(text: str) -> tuple[str, int]:
    from hushfit.errors import InvalidArgument

    name, _, way = text.rpartition("=")
    if not name or way not in ("+1", "1", "-1"):
        raise InvalidArgument(
            f"--monotone {text} is not understood. Write COLUMN=+1 for a rising shape or COLUMN=-1 "
            "for a falling one."
        )
    return name, int(way)


def read_edges(path: str, features: list[str]) -> Any:
    """Edges between features from a CSV file whose lines name two each."""
    import csv

    import numpy as np

    from hushfit.errors import InvalidArgument

    try:
        with open(path, newline="", encoding="utf-8") as file:
            lines = [line for line in csv.reader(file) if line]
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no CSV text in UTF-8"
        raise InvalidArgument(f"the graph {path} cannot be read: {reason}.") from None
    places = {name: k for k, name in enumerate(features)}
    for number, line in enumerate(lines, 1):
        unknown = [name for name in line if name not in places]
        if len(line) != 2 or unknown:
            what = f"names {unknown[0]!r}" if unknown else f"has {len(line)} cells"
            raise InvalidArgument(
                f"line {number} of the graph {path} {what}. Every line must name two features of "
                f"the model, such as {','.join(features[:2])}."
            )
    if not lines:
        raise InvalidArgument(f"the graph {path} has no edges. Name two features in each line.")
    return np.array([[places[name] for name in line] for line in lines])
