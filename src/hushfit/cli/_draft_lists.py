"""Drafts a schema of lists of documents, and compares one with the rows. Not private, and marked so
in every output.
"""

import itertools
import json
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from hushfit.cli._column_draft import ColumnDraft
from hushfit.cli._draft import DraftNotes, looks_like_ids, scanned
from hushfit.data.lists import DocumentTable, RankingSchema, letor_documents
from hushfit.data.tables import Table, Watch
from hushfit.errors import InvalidArgument

_UNITS = """What is protected:
"labels": all grades of one list (of one person, if `person` is named). DOCUMENTS AND THEIR FEATURES ARE PUBLIC, NOT PROTECTED.
"list": one list with its documents. "person": all lists of one person; needs `person`, the column that says whose list each is."""  # noqa: E501

_GRADES = "Largest grade of the scale, as the judges were told it; larger ones are refused."
_SMALLEST_LARGE_GRADE = 1


def draft_lists(
    tables: Sequence[Table], target: str, query: str, watch: Watch | None
) -> tuple[RankingSchema, DraftNotes]:
    """A draft for a table: its numeric columns are the features."""
    drafts = scanned(tables, watch)
    for name, what in ((target, "the grades"), (query, "the query")):
        if name not in drafts:
            known = ", ".join(drafts) or "none, since there are no rows"
            raise InvalidArgument(f"the table has no column {name!r}, {what}. It has: {known}.")
    if target == query:
        raise InvalidArgument(f"{target!r} cannot be both the grade and the query.")
    grades = drafts[target]
    if grades.others or grades.missing or grades.low < 0:
        raise InvalidArgument(
            f"the target {target!r} has a cell that is no grade. Grades are numbers: 0 for "
            "irrelevant, more for better."
        )
    notes, columns = DraftNotes(), []
    for name, draft in drafts.items():
        reason = "" if name in (target, query) else _left_out(name, draft)
        if reason:
            notes.dropped[name] = reason
        elif name not in (target, query):
            columns.append(name)
    if not columns:
        raise InvalidArgument(
            "no column of numbers is left to rank by. Encode texts as numbers first."
        )
    return RankingSchema(target, query, _rounded_grade(grades.high), tuple(columns)), notes


def _left_out(name: str, draft: ColumnDraft) -> str:
    """Why a column is no feature; empty if it is one."""
    if draft.numbers == 0 and draft.others == 0:
        return "it is empty"
    if looks_like_ids(draft, name):
        return (
            "its values are like ids; name it as `person` if it says whose list each is"
            if draft.repeats
            else "every document has another value, like an identifier"
        )
    if not draft.others:
        return ""
    return (
        "it has texts; encode them as numbers to rank by them, or name it as `person` if it says "
        "whose list each is"
    )


def draft_letor(paths: Sequence[str]) -> RankingSchema:
    """A draft for LETOR text: the largest feature number and the largest grade."""
    width, highest, n_documents = 0, 0.0, 0
    for path in paths:
        for _, grade, _, features in letor_documents(path):
            width = max(width, *(column for column, _ in features), 0)
            highest, n_documents = max(highest, grade), n_documents + 1
            if grade < 0:
                raise InvalidArgument(
                    f"{path} has a negative grade. Grades start at 0 for irrelevant documents."
                )
    if not n_documents or not width:
        raise InvalidArgument("there are no documents with features. Check the files.")
    return RankingSchema("grade", "qid", _rounded_grade(highest), n_features=width)


def _rounded_grade(highest: float) -> float:
    return float(max(np.ceil(highest), _SMALLEST_LARGE_GRADE))


def lists_to_toml(schema: RankingSchema, head: str) -> str:
    """A drafted schema of lists as TOML, with comments."""

    def remark(text: str) -> str:
        return "".join(f"# {line}\n" if line else "#\n" for line in text.splitlines())

    features = (
        f"columns = {json.dumps(list(schema.columns), ensure_ascii=False)}\n"
        if schema.columns
        else f"n_features = {schema.n_features}\n"
    )
    return (
        f"{remark(head)}\nconfirm = true\n\n"
        f"target = {json.dumps(schema.target, ensure_ascii=False)}\n"
        f"query = {json.dumps(schema.query, ensure_ascii=False)}\n\n"
        f"{remark(_GRADES)}"
        f"max_grade = {schema.max_grade:g}\n\n"
        f"{remark('Features of a document: numbers.')}{features}\n"
        f"{remark(_UNITS)}unit = {json.dumps(schema.unit)}\n"
    )


@dataclass(frozen=True)
class ListCounts:
    """What ``--check`` finds out about lists. Exact, and not private."""

    documents: int
    lists: int
    longest: int
    remarks: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        """Plain JSON values."""
        counts = {"documents": self.documents, "lists": self.lists, "longest": self.longest}
        return {**counts, "remarks": list(self.remarks)}


def compare_lists(table: DocumentTable, schema: RankingSchema) -> ListCounts:
    """Compare documents with a schema of lists."""
    changes = np.flatnonzero(table.qid[1:] != table.qid[:-1]) + 1
    starts = np.concatenate([[0], changes, [len(table.qid)]])
    lengths, relevant = np.diff(starts), np.add.reduceat(np.nan_to_num(table.y) > 0, starts[:-1])
    varies = [len(np.unique(table.X[a:b], axis=0)) > 1 for a, b in itertools.pairwise(starts)]
    counted = {
        "documents have a grade that is missing or negative": int(
            np.sum(~np.isfinite(table.y) | (table.y < 0))
        ),
        f"documents have a grade above max_grade = {schema.max_grade:g}": int(
            np.sum(table.y > schema.max_grade)
        ),
        "documents have a feature that is missing or no number": int(
            np.sum(~np.isfinite(table.X).all(axis=1))
        ),
        "queries are split: other documents lie between theirs; sort the rows by query": len(
            lengths
        )
        - len(np.unique(table.qid)),
        "lists have one document, from which no order is learnt": int(np.sum(lengths == 1)),
        "lists have no relevant document, from which no order is learnt": int(
            np.sum(relevant == 0)
        ),
        "lists have only equal documents": len(varies) - sum(varies) - int(np.sum(lengths == 1)),
    }
    if schema.max_list_length is not None:
        longer = int(np.sum(lengths > schema.max_list_length))
        counted[f"lists are longer than max_list_length = {schema.max_list_length}"] = longer
    remarks = tuple(f"{count} {words}" for words, count in counted.items() if count)
    return ListCounts(len(table.y), len(lengths), int(lengths.max()), remarks)
