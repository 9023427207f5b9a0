"""The order of the gallery: what most readers come for is first."""

_ORDER = [
    "own_csv",
    "planning",
    "regression",
    "missing_values",
    "persons",
    "curved_effects",
    "statistics",
    "intervals",
    "shared_ledger",
    "several_owners",
    "ranking",
    "network",
    "audit",
]


class GalleryOrder:
    """The place of a program; sphinx-gallery makes one for each of its folders."""

    def __init__(self, src_dir: str) -> None:
        del src_dir

    def __call__(self, filename: str) -> int:
        return _ORDER.index(filename.removeprefix("plot_").removesuffix(".py"))
