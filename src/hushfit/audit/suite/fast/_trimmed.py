"""The whole fast audit, by name."""

from collections.abc import Iterator

from hushfit.audit._network_names import NETWORK_CHECKS, network_check, networks_installed
from hushfit.audit.checks import LEVEL
from hushfit.audit.suite._jobs import FALSE_ALARMS
from hushfit.audit.suite.fast._attacks import attacks
from hushfit.audit.suite.fast._batches import batches
from hushfit.audit.suite.fast._check import ATTACKS_ALLOWED, Check
from hushfit.audit.suite.fast._laws import laws
from hushfit.audit.suite.fast._others import others
from hushfit.audit.suite.fast._owners import owners
from hushfit.audit.suite.fast._persons import persons
from hushfit.audit.suite.fast._prices import prices
from hushfit.audit.suite.fast._rankings import rankings
from hushfit.audit.suite.fast._runs import noises, replays
from hushfit.audit.suite.fast._sensitivities import sensitivities
from hushfit.audit.suite.fast._side_channels import side_channels


def trimmed_checks() -> dict[str, Check]:
    """The whole fast audit, by name.

    Returns
    -------
    dict of str to Check
    """
    parts = (
        sensitivities,
        persons,
        batches,
        replays,
        noises,
        prices,
        laws,
        attacks,
        side_channels,
        rankings,
        owners,
        _networks,
        others,
    )
    found = {check.name: check for part in parts for check in part()}
    assert sum(check.attacks for check in found.values()) <= ATTACKS_ALLOWED
    assert sum(check.tests for check in found.values()) * LEVEL <= FALSE_ALARMS / 2
    return found


def _networks() -> Iterator[Check]:
    if networks_installed():
        for name in NETWORK_CHECKS:
            yield Check(name, network_check(name))
