"""The penalty of ``hushfit fit``: by the options, or else by ``[penalty]`` of the schema."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

# Penalties by name, and those whose structure comes from the schema or a file.
_BY_NAME: Final = (
    *("l1", "l2", "elasticnet", "scad", "mcp", "l1/2", "fused", "total-variation", "nuclear"),
    "nonnegative",
)
PENALTIES: Final = ("none", *_BY_NAME, "group", "sparse-group", "graph")
CONSTRAINTS: Final = ("identity", "chain", "graph")
USUAL_L1_RATIO: Final = 0.5
# The options that override single values of the schema.
_OPTIONS: Final = {
    "name": "penalty",
    "alpha": "alpha",
    "l1_ratio": "l1_ratio",
    "constraint": "constraint",
}
# Penalties with a share of the lasso.
WITH_L1_RATIO: Final = ("elasticnet", "fused", "sparse-group")
_OF_GROUPS: Final = ("group", "sparse-group")


@dataclass(frozen=True)
class ChosenPenalty:
    """What was chosen, and where it is written.

    Parameters
    ----------
    choice : PenaltyChoice
    schema : Schema
        Its features are what the penalty is about.
    of_options : frozenset of str
        Values that are from the command line; the others are from the schema.
    """

    choice: Any
    schema: Any
    of_options: frozenset[str] = frozenset()

    @property
    def name(self) -> str:
        """The name of the penalty; "none" without one."""
        return self.choice.name or "none"

    @property
    def l1_ratio(self) -> float:
        """The share of the lasso."""
        found = self.choice.l1_ratio
        return USUAL_L1_RATIO if found is None else float(found)

    def called(self, key: str) -> str:
        """A value as the user wrote it: ``--penalty l1``, or ``[penalty] name = 'l1'``."""
        value = getattr(self.choice, key)
        if key in self.of_options:
            return f"--{_OPTIONS[key].replace('_', '-')} {value}"
        return f"[penalty] {key} = {value!r} of the schema"

    def settings(self, alpha: float) -> dict[str, Any]:
        """The arguments of a classifier.

        Parameters
        ----------
        alpha : float

        Returns
        -------
        dict
        """
        self._refuse_other_features()
        penalty = self._of_groups(alpha) if self.name in _OF_GROUPS else {"penalty": self._plain()}
        return {**penalty, "alpha": alpha, "l1_ratio": self.l1_ratio, **self._constraint()}

    def _plain(self) -> str | None:
        return {"none": None, "graph": "l1"}.get(self.name, self.name)

    def _refuse_other_features(self) -> None:
        """Structure is about the encoded columns, and curves are others."""
        from hushfit.errors import InvalidArgument

        key = "name" if self.name in (*_OF_GROUPS, "graph") else "constraint"
        structured = key == "name" or self.choice.constraint not in (None, "identity")
        if structured and self.schema.features != "linear":
            raise InvalidArgument(
                f"{self.called(key)} is about the features of a column, and with features "
                f"{self.schema.features} they are others. Nothing was spent. Use one of them."
            )
        if self.choice.constraint is not None and self.name in ("none", "graph"):
            raise InvalidArgument(
                f"{self.called('constraint')} says what a penalty is a function of, and the "
                f"penalty is {self.name}. Nothing was spent. Choose one, such as --penalty l1, or "
                "leave the constraint out."
            )

    def _of_groups(self, alpha: float) -> dict[str, Any]:
        """A penalty of groups; groups that overlap get copies of their coefficients."""
        from hushfit.constraints import copied_groups, group
        from hushfit.penalties import GroupLasso, SparseGroup

        groups = [self._members(names) for names in self.choice.groups] or self.schema.groups
        count = sum(map(len, groups))
        overlap = len({place for members in groups for place in members}) < count
        of = copied_groups(groups) if overlap else tuple(map(tuple, groups))
        penalty: Any = (
            GroupLasso(alpha, of) if self.name == "group" else SparseGroup(alpha, of, self.l1_ratio)
        )
        width = len(self.schema.feature_names)
        return {"penalty": penalty, **({"constraint": group(groups, width)} if overlap else {})}

    def _members(self, names: Sequence[str]) -> tuple[int, ...]:
        """Places of features; a column stands for all of its features."""
        own = {
            column.name: members
            for column, members in zip(self.schema.columns, self.schema.groups, strict=True)
        }
        places = self._places()
        found = [own.get(name) or (places[self._known(name, [*own])],) for name in names]
        return tuple(dict.fromkeys(place for members in found for place in members))

    def _places(self) -> dict[str, int]:
        return {name: k for k, name in enumerate(self.schema.feature_names)}

    def _known(self, name: str, also: Sequence[str] = ()) -> str:
        """A name of a feature; others are refused."""
        from hushfit.errors import InvalidArgument

        features = self.schema.feature_names
        if name not in features:
            raise InvalidArgument(
                f"[penalty] names {name!r}, which is no feature of the model. Nothing was spent. "
                f"Features are named such as {', '.join(map(repr, [*also, *features][:4]))}."
            )
        return name

    def _constraint(self) -> dict[str, Any]:
        import numpy as np

        from hushfit.constraints import generalised, graph
        from hushfit.solvers import DPSADMM, PublicGraph

        places, width = self._places(), len(self.schema.feature_names)
        if self.name == "graph":
            return {"solver": PublicGraph(DPSADMM(), self._edges(places))}
        if self.choice.constraint == "graph":
            return {"constraint": graph(self._edges(places), width)}
        if self.choice.constraint == "generalised":
            self._refuse_without("combinations", "combinations = [{age = 1, dose = -2}]")
            rows = np.zeros((len(self.choice.combinations), width))
            for row, terms in zip(rows, self.choice.combinations, strict=True):
                for name, weight in terms:
                    row[places[self._known(name)]] = weight
            return {"constraint": generalised(rows)}
        return {} if self.choice.constraint is None else {"constraint": self.choice.constraint}

    def _edges(self, places: dict[str, int]) -> Any:
        import numpy as np

        self._refuse_without("edges", "edges = [['age', 'dose']]")
        return np.array(
            [[places[self._known(name)] for name in ends] for ends in self.choice.edges]
        )

    def _refuse_without(self, key: str, example: str) -> None:
        from hushfit.errors import InvalidArgument

        if not getattr(self.choice, key):
            file = ", or give --graph FILE" if key == "edges" else ""
            raise InvalidArgument(
                f"the penalty needs {key}, and there are none. Nothing was spent. Write {example} "
                f"under [penalty] of the schema{file}."
            )


def chosen_penalty(given: dict[str, Any], options: set[str], schema: Any) -> ChosenPenalty:
    """The penalty of a fit. ``--penalty`` replaces that of the schema with all that belongs to it;
    the other options replace single values.

    Parameters
    ----------
    given : dict
        All options, by name.
    options : set of str
        Those that were written on the command line.
    schema : Schema

    Returns
    -------
    ChosenPenalty
    """
    from hushfit.data.schema import PenaltyChoice
    from hushfit.errors import InvalidArgument

    stated = schema.penalty
    if stated is None or "penalty" in options:
        stated = PenaltyChoice()
    if stated.name not in (None, *PENALTIES):
        raise InvalidArgument(
            f"[penalty] name = {stated.name!r} of the schema is not known. Choose one of "
            f"{', '.join(PENALTIES)}."
        )
    own = {key: given[option] for key, option in _OPTIONS.items() if option in options}
    merged = replace(stated, **own, **_edges_of_file(given, {**vars(stated), **own}, schema))
    return ChosenPenalty(merged, schema, frozenset(own))


def _edges_of_file(
    given: dict[str, Any], chosen: dict[str, Any], schema: Any
) -> dict[str, tuple[tuple[str, ...], ...]]:
    """The edges of ``--graph``, which belongs to a penalty or constraint of a graph."""
    from hushfit.errors import InvalidArgument

    if given["graph_path"] is None:
        return {}
    if "graph" not in (chosen["name"], chosen["constraint"]):
        raise InvalidArgument(
            "--graph FILE belongs to --penalty graph or --constraint graph. Give both."
        )
    return {"edges": read_edges(given["graph_path"], schema.feature_names)}


def read_edges(path: str, features: list[str]) -> tuple[tuple[str, ...], ...]:
    """Edges between features from a CSV file whose lines name two each."""
    import csv

    from hushfit.errors import InvalidArgument

    try:
        with open(path, newline="", encoding="utf-8") as file:
            lines = [line for line in csv.reader(file) if line]
    except (OSError, ValueError) as error:
        reason = getattr(error, "strerror", None) or "it is no CSV text in UTF-8"
        raise InvalidArgument(f"the graph {path} cannot be read: {reason}.") from None
    known = set(features)
    for number, line in enumerate(lines, 1):
        unknown = [name for name in line if name not in known]
        if len(line) != 2 or unknown:
            what = f"names {unknown[0]!r}" if unknown else f"has {len(line)} cells"
            raise InvalidArgument(
                f"line {number} of the graph {path} {what}. Every line must name two features of "
                f"the model, such as {','.join(features[:2])}."
            )
    if not lines:
        raise InvalidArgument(f"the graph {path} has no edges. Name two features in each line.")
    return tuple(tuple(line) for line in lines)
