"""Taking secrets out of texts that are kept."""

import re


def redacted(command: str) -> str:
    """A command line without the logins of database addresses, and without bytes that are no
    text."""
    # Greedy up to the last @: a password may hold any sign, and what is hidden in excess does no
    # harm.
    hidden = re.sub(r"://.*@", "://***@", command, flags=re.DOTALL)
    shown = re.sub(r"(password=)[^&\s'\"]*", r"\1***", hidden, flags=re.IGNORECASE)
    return shown.encode("utf-8", "replace").decode()
