"""Feature maps that are data, so that a model file can hold them."""

from collections.abc import Mapping
from typing import Any, Final

from hushfit.errors import InvalidArgument
from hushfit.features._additive_map import AdditiveMap
from hushfit.features._feature_map import FeatureMap
from hushfit.features._hashed_text import HashedText
from hushfit.features._scattering_map import ScatteringMap

_KINDS: Final = {kind.kind: kind for kind in (AdditiveMap, ScatteringMap, HashedText)}


def stored_map(described: Mapping[str, Any]) -> FeatureMap:
    """Read what ``to_dict`` of a map wrote; nothing else is accepted, and no code is run.

    Parameters
    ----------
    described : mapping

    Returns
    -------
    FeatureMap
    """
    kind = _KINDS.get(described["kind"]) if isinstance(described["kind"], str) else None
    if kind is None:
        raise InvalidArgument(
            f"the feature map has kind={described['kind']!r}. Known kinds: {', '.join(_KINDS)}."
        )
    made: FeatureMap = kind.from_dict(described)
    if made.to_dict().keys() != described.keys():
        raise InvalidArgument(
            "the feature map has missing or unknown fields. Use what was written, unedited."
        )
    return made
