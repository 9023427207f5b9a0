"""Public feature maps: each row by itself, learnt from no row, so they cost no privacy.

CLASSIFICATION      The rule of additive models of classes: rows of length one
REGRESSION          The rule of additive models of numbers: rows that keep their lengths
FeatureMap          What every public feature map promises
AdditiveFeatures    Settings of an additive model
AdditiveMap         Every numeric column as a few piecewise linear columns
HashedText          Columns of texts as signed counts of hashed n-grams
InputColumn         What is public about a column with values in [0, 1]
KnotMasses          How the rows are distributed over the knots of a column, as a release shows
MapRule             How many intervals numeric columns get, from public numbers
RowProfile          What the released second moment shows of the rows of an additive model
ScatteringMap       Rows of pixels as scattering coefficients
Span                The outputs of one input column
additive_map        The map of the rule
centred             Values at the knots minus their mean over the rows
column_place        The number of a column that is given by its name or number
hat_means           Mean of each hat function over the range
knot_values         Values of the columns of one variable at its knots
mapped_rows         All rows through a feature map, some at a time
monotone            The rising or falling function nearest to some values at knots
refuse_if_rows_mix  Refuse a map that does not treat each row by itself
shortened           Rows scaled down to a length, each by its own
smoothed            The function nearest to some values at knots, with a penalty on its curvature
stored_map          Read a feature map of a model file
weights_of          Weights of the columns of one variable that give some values at its knots
"""

from typing import TYPE_CHECKING

from hushfit._on_demand import on_demand

if TYPE_CHECKING:
    from hushfit.features._additive_features import (
        CLASSIFICATION,
        REGRESSION,
        AdditiveFeatures,
        MapRule,
        additive_map,
        column_place,
    )
    from hushfit.features._additive_map import AdditiveMap, Span, hat_means, knot_values
    from hushfit.features._feature_map import FeatureMap
    from hushfit.features._hashed_text import HashedText
    from hushfit.features._input_column import InputColumn
    from hushfit.features._mapped_rows import mapped_rows, shortened
    from hushfit.features._scattering_map import ScatteringMap
    from hushfit.features._self_test import refuse_if_rows_mix
    from hushfit.features._shapes import (
        KnotMasses,
        RowProfile,
        centred,
        monotone,
        smoothed,
        weights_of,
    )
    from hushfit.features._stored_maps import stored_map
else:
    __getattr__ = on_demand(__name__)

__all__ = [
    "CLASSIFICATION",
    "REGRESSION",
    "AdditiveFeatures",
    "AdditiveMap",
    "FeatureMap",
    "HashedText",
    "InputColumn",
    "KnotMasses",
    "MapRule",
    "RowProfile",
    "ScatteringMap",
    "Span",
    "additive_map",
    "centred",
    "column_place",
    "hat_means",
    "knot_values",
    "mapped_rows",
    "monotone",
    "refuse_if_rows_mix",
    "shortened",
    "smoothed",
    "stored_map",
    "weights_of",
]
