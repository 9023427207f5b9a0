"""What can be checked without an attack: sensitivities, noise, prices, payments and side channels.

check_batch_sensitivity  Whether, in any batch, one more record moves a sum by no more than its
                         radius, and one exchanged by no more than twice that
check_batches            Whether the rows that a mechanism reads are the secret batch that its
                         price is for
check_ledger             Whether an account composes, refuses, is one account however it is copied,
                         and holds against whoever chooses by answers
check_paid               Whether all looks at the rows were paid for, beforehand, at no less than
                         their price, and promised as they were asked for
check_refusals           Whether a curator answers what its plan declares and nothing else
check_sealed             Whether a fit whose door is sealed tells tables apart, and whether what
                         stands behind the door is record by record
LAYOUTS                  Kinds of tables and columns in which the same cells are read
check_cells              Exchange one cell of a column for another, of whatever type, and count the
                         other cells that are then read differently
Fuzzed                   The worst neighbours that a search found
check_order              Whether a query adds records up exactly
check_overwritten        Arrays of a query are written to after it was asked
check_replay             Whether a run is a function of what was released
check_sensitivity        `fuzz_sensitivity` as a finding
check_side_channels      Whether anything but the released numbers tells two tables apart
fuzz_sensitivity         Look for neighbours that move the answer of a query further than it says,
                         by climbing from random pairs of records
check_disk_ledger        Whether a ledger on disk refuses second names and forked children, and
                         shows forgeries
ExactCase                A price, and pairs of laws that it must cover
ExactLaws                Logarithms of the probabilities of all outcomes on two tables
best_of_gaussians        The best of a random number of Gaussian trials, the score being the answer
                         itself
check_exact              Whether a price covers its worst pairs at every epsilon, and how close
                         they come
choice_law               Logarithms of the probabilities that each score is the largest after
                         Laplace noise
curve_of                 The whole trade-off between two laws, in either order, for an audit that
                         knows them up to the size of their noise
exact_cases              Every mechanism whose answers have a law that can be written down
exact_findings           All exact small cases
gate_law                 Logarithms of the probabilities of stopping at each score, and of never
                         stopping
repeated_corner          So many choices between two corners
Example                  A query, the table around the record that is exchanged, and what labels
                         are admissible
example_queries          Every query that is answered over rows of features, by name
Finding                  What one check found
LEVEL                    False-alarm rate of one check
check_moves_on_grid      Whether neighbours, rounded as they are released, are no further apart
                         than the price counts
check_release_noise      What the boundary adds to an answer
check_sampler            Law, independence and freshness of a sampler
check_small_noise        Whether noise next to the smallest numbers has the scale that is paid for,
                         or is refused
noise_findings           The same for answers that were collected elsewhere, such as by a curator
                         under test
Laws                     Probabilities of the cells of one answer on two tables
check_choices            Whether a mechanism's choices have the law that its price is for
check_mechanism_price    `check_price` of one mechanism by itself
check_price              Whether a price is at least what answers with these laws reveal, at every
                         epsilon
check_quote              Whether a whole plan, at the noise that was chosen for it, keeps its
                         budget
check_search_price       Whether the best of a random number of Gaussian trials costs what it is
                         priced at
worst_laws               Laws of ``count`` answers on pairs of tables that are as far apart as the
                         mechanism allows
Bare                     A query without a problem, as one that the climb over neighbours can ask
ObjectiveGradient        The gradient of a perturbed objective at a point, as a query
check_certificate        Whether the noise on a minimiser covers every solver that its certificate
                         lets through, and the noise inside every neighbour
check_conversation       Whether an owner's words are functions of its releases and of what it
                         heard
check_run_noise          Whether the noise of a run is as large as was paid for, afresh in every
                         release, and of its own in every coordinate
"""

from hushfit.audit.checks._boundary import (
    check_batch_sensitivity,
    check_batches,
    check_ledger,
    check_paid,
    check_refusals,
    check_sealed,
)
from hushfit.audit.checks._cells import LAYOUTS, check_cells
from hushfit.audit.checks._deterministic import (
    Fuzzed,
    check_order,
    check_overwritten,
    check_replay,
    check_sensitivity,
    check_side_channels,
    fuzz_sensitivity,
)
from hushfit.audit.checks._disk_ledger import check_disk_ledger
from hushfit.audit.checks._exact_laws import (
    ExactCase,
    ExactLaws,
    best_of_gaussians,
    check_exact,
    choice_law,
    curve_of,
    exact_cases,
    exact_findings,
    gate_law,
    repeated_corner,
)
from hushfit.audit.checks._examples import Example, example_queries
from hushfit.audit.checks._noise import (
    LEVEL,
    Finding,
    check_moves_on_grid,
    check_release_noise,
    check_sampler,
    check_small_noise,
    noise_findings,
)
from hushfit.audit.checks._prices import (
    Laws,
    check_choices,
    check_mechanism_price,
    check_price,
    check_quote,
    check_search_price,
    worst_laws,
)
from hushfit.audit.checks._runs import (
    Bare,
    ObjectiveGradient,
    check_certificate,
    check_conversation,
    check_run_noise,
)

__all__ = [
    "LAYOUTS",
    "LEVEL",
    "Bare",
    "ExactCase",
    "ExactLaws",
    "Example",
    "Finding",
    "Fuzzed",
    "Laws",
    "ObjectiveGradient",
    "best_of_gaussians",
    "check_batch_sensitivity",
    "check_batches",
    "check_cells",
    "check_certificate",
    "check_choices",
    "check_conversation",
    "check_disk_ledger",
    "check_exact",
    "check_ledger",
    "check_mechanism_price",
    "check_moves_on_grid",
    "check_order",
    "check_overwritten",
    "check_paid",
    "check_price",
    "check_quote",
    "check_refusals",
    "check_release_noise",
    "check_replay",
    "check_run_noise",
    "check_sampler",
    "check_sealed",
    "check_search_price",
    "check_sensitivity",
    "check_side_channels",
    "check_small_noise",
    "choice_law",
    "curve_of",
    "exact_cases",
    "exact_findings",
    "example_queries",
    "fuzz_sensitivity",
    "gate_law",
    "noise_findings",
    "repeated_corner",
    "worst_laws",
]
