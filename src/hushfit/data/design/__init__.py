"""The columns of an ordinary regression table, from a public schema. `hushfit.data.design.formula`,
which needs formulaic, makes them from a formula.

Design       The columns of a regression table, computed of each row by itself
MainEffects  All columns of a schema, each by itself
telling_gaps  The schema by which rows are encoded, so that missing numbers are told
"""

from hushfit.data.design._main_effects import Design, MainEffects, telling_gaps

__all__ = ["Design", "MainEffects", "telling_gaps"]
