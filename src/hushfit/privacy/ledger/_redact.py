"""Removing secrets from stored texts."""

import re


def redacted(command: str) -> str:
    """A command line without logins of database addresses and without invalid text."""
    # Greedy up to the last @: a password may contain any character, and hiding too much does no
    # harm.
    hidden = re.sub(r"://.*@", "://***@", command, flags=re.DOTALL)
    shown = re.sub(r"(password=)[^&\s'\"]*", r"\1***", hidden, flags=re.IGNORECASE)
    return shown.encode("utf-8", "replace").decode()
