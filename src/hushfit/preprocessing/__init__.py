"""Transformers with declared costs: public ranges, private quantiles, vocabularies, pipelines.

BoundedScaler               Clip every column to its public range and map it to [0, 1]
LOST_SHARE_OF_VOCABULARIES  Share of delta for releasing a text that only one record has
SchemaEncoder               Encode a table with a public schema
fitted_with                 Fit an estimator, every private part with the same persons
is_private                  Whether an estimator pays for what it learns
payers                      The parts that spend privacy; the estimator itself if it is one
person_unit_of              The one privacy unit that all parts have in a fit with ``groups``
private_parts               The parts that pay, by their names in ``set_params``
refuse_choices_by_rows      Refuse a column transformer whose columns or layout the rows would
                            decide
refuse_unused_settings_of   Refuse weights for the rows of a person, in any part, without ids
PublicFeatures              Rows through a public feature map: images, texts, frozen networks
PrivatePipeline             A scikit-learn pipeline with one privacy budget for preprocessing and
                            model together
pipeline_guarantee          One guarantee for a fitted scikit-learn pipeline whose steps were
                            charged separately
LOOKS                       Names of the two releases of the quantile scaler
PrivateQuantileScaler       Clip every column to two of its quantiles, found privately, and map it
                            to [0, 1]
Spread                      Distribution function of a column, linear between edges
spreads_of                  Distribution of each column, from two noisy histograms
"""

from hushfit.preprocessing._bounded import BoundedScaler
from hushfit.preprocessing._encoder import LOST_SHARE_OF_VOCABULARIES, SchemaEncoder
from hushfit.preprocessing._parts import (
    fitted_with,
    is_private,
    payers,
    person_unit_of,
    private_parts,
    refuse_choices_by_rows,
    refuse_unused_settings_of,
)
from hushfit.preprocessing._pipeline import PrivatePipeline
from hushfit.preprocessing._pipeline_guarantee import pipeline_guarantee
from hushfit.preprocessing._public_features import PublicFeatures
from hushfit.preprocessing._quantile_scaler import LOOKS, PrivateQuantileScaler, spreads_of
from hushfit.preprocessing._quantiles import Spread

__all__ = [
    "LOOKS",
    "LOST_SHARE_OF_VOCABULARIES",
    "BoundedScaler",
    "PrivatePipeline",
    "PrivateQuantileScaler",
    "PublicFeatures",
    "SchemaEncoder",
    "Spread",
    "fitted_with",
    "is_private",
    "payers",
    "person_unit_of",
    "pipeline_guarantee",
    "private_parts",
    "refuse_choices_by_rows",
    "refuse_unused_settings_of",
    "spreads_of",
]
