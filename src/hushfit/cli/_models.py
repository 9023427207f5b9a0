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
_TARGETS_IN_WORDS: Final = {
    "categorical": "classes",
    "numeric": "numbers",
    "ordinal": "grades",
    "count": "counts",
}
# Models whose alpha is chosen from releases unless it is given.
_WITH_ALPHA: Final = ("ridge", "lasso", "elasticnet", "huber", "poisson")
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
        penalty = self.given["penalty"]
        return kind(
            **self._common,
            penalty=None if penalty == "none" else penalty,
            alpha=alpha,
            l1_ratio=self.given["l1_ratio"],
            features=self.features(),
        )

    def _regressor(self) -> Any:
        import hushfit

        name, target = self.model, self.schema.target
        self._refuse_options_of_classifiers()
        self.features()
        own: dict[str, Any] = {"alpha": self._alpha("auto")} if name in _WITH_ALPHA else {}
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
        if chosen != "linear" and not self.classes:
            raise InvalidArgument(
                f"--features {chosen} is for classes; models of numbers are linear in the encoded "
                "columns. Nothing was spent. Leave it out of the options and of the schema."
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


def _direction(text: str) -> tuple[str, int]:
    from hushfit.errors import InvalidArgument

    name, _, way = text.rpartition("=")
    if not name or way not in ("+1", "1", "-1"):
        raise InvalidArgument(
            f"--monotone {text} is not understood. Write COLUMN=+1 for a rising shape or COLUMN=-1 "
            "for a falling one."
        )
    return name, int(way)
