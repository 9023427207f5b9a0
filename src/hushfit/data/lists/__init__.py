"""Lists of documents, for ranking.

DIAMETER_SLACK  Bound on the relative rounding error of a diameter
Documents       The features of documents in lists, used in place
DocumentTable   Documents as read from files
ListBlock       Some lists: their documents, their grades and what each of them weighs
RankingSchema   The public description of lists of documents, as a TOML file has it
RankedLists     Documents in lists, and a grade for each document
is_letor        Whether a file is LETOR text
letor_documents The documents of LETOR text, one by one
read_documents  Read documents with their grades and queries
list_starts     Where each list starts, and where the last one ends
one_for_each_list  The person of each list, which is that of all its documents
"""

from typing import TYPE_CHECKING

from hushfit._on_demand import on_demand

if TYPE_CHECKING:
    from hushfit.data.lists._documents import DIAMETER_SLACK, Documents
    from hushfit.data.lists._grouping import list_starts, one_for_each_list
    from hushfit.data.lists._ranked_lists import ListBlock, RankedLists
    from hushfit.data.lists._reading import (
        DocumentTable,
        RankingSchema,
        is_letor,
        letor_documents,
        read_documents,
    )
else:
    __getattr__ = on_demand(__name__)

__all__ = [
    "DIAMETER_SLACK",
    "DocumentTable",
    "Documents",
    "ListBlock",
    "RankedLists",
    "RankingSchema",
    "is_letor",
    "letor_documents",
    "list_starts",
    "one_for_each_list",
    "read_documents",
]
