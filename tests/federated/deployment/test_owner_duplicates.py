"""An owner's configuration may not name one table twice."""

import os

import pytest
from _deployed import a_run, approving, furnish

from hushfit.errors import InvalidArgument
from hushfit.federated.deployment import OwnerConfig


@pytest.mark.parametrize(
    "other", ["./rows.csv", "link.csv", "hard.csv", "*.csv", "../north/rows.csv"]
)
def test_a_table_that_an_owner_names_twice_is_refused(tmp_path, other):
    """Its rows would count twice and lose protection; a link is no other table."""
    home = tmp_path / "north"
    furnish(home, "north")
    (home / "link.csv").symlink_to("rows.csv")
    os.link(home / "rows.csv", home / "hard.csv")
    path = home / "owner.toml"
    path.write_text(
        path.read_text().replace('data = "rows.csv"', f'data = ["rows.csv", "{other}"]')
    )
    config, spec = OwnerConfig.load(path), a_run()
    with pytest.raises(InvalidArgument, match="twice"):
        approving(config, spec).read_rows(spec)
    assert not config.open_ledger().entries
