"""How pictures of the gallery look: small sheets with large letters, so that thumbnails can be
read too.
"""

from typing import Any

import matplotlib


def apply(gallery_conf: dict[str, Any], program: str) -> None:
    """Set matplotlib's defaults before each program; sphinx-gallery calls this."""
    del gallery_conf, program
    matplotlib.rcParams.update(
        {
            "axes.spines.right": False,
            "axes.spines.top": False,
            "figure.constrained_layout.use": True,
            "figure.figsize": (5.4, 3.6),
            "legend.frameon": False,
            "savefig.dpi": 130,
        }
    )
