"""Checks that need no attack: sensitivities, noise, costs, payments and side channels.

boundary/                Checks of the trusted boundary: what bypasses it, what is paid for it,
                         which rows are read, and what it must refuse
LAYOUTS                  Containers of the same cells: lists, numpy and pyarrow
check_cells              Check that no cell of a column changes how the others are read
Fuzzed                   The worst pair of neighbours that a search found
check_order              Check that a query sums records exactly
Table                    Rows and labels, and the ids of persons if they are the units
fitted_on                An estimator fitted on a table
check_overwritten        Check the sensitivity of a query after its arrays were overwritten
check_replay             Check that a run is a function of its releases
check_sensitivity        `fuzz_sensitivity` as a finding
check_side_channels      Check that only the released numbers depend on the rows
fuzz_sensitivity         Search, by hill climbing, for neighbours that exceed the sensitivity of a
                         query
ExactCase                A cost, and pairs of distributions that it must cover
ExactLaws                Log-probabilities of all outcomes on two tables
best_of_gaussians        The best of a random number of Gaussian trials, scored by the answer
check_exact              Check that a cost covers its worst pairs, and how close they come
choice_law               Log-probabilities that each score is the largest after Laplace noise
curve_of                 The trade-off curve of two distributions, in either order
exact_cases              Every mechanism whose answers have a distribution in closed form
exact_findings           All exact small cases
gate_law                 Log-probabilities of stopping at each score, and of never stopping
repeated_corner          Several choices between two vertices
Example                  A query, the table around the replaced record, and admissible labels
example_queries          Every query that is answered over rows of features, by name
source_for               The source that a query of a problem is answered over
Finding                  Result of one check
LEVEL                    False-alarm rate of one check
check_moves_on_grid      Check that neighbours, rounded as released, are within the accounted
                         distance
check_release_noise      Check the noise that a curator adds to an answer
check_sampler            Check distribution, independence and freshness of a sampler
check_small_noise        Check that noise of a tiny sensitivity has the paid scale, or is refused
noise_findings           `check_release_noise` for answers that were collected elsewhere
check_parts              Check that a query over a table in parts keeps its sensitivity, and answers
                         as in one place
source_in_parts          The source that a query of a problem is answered over, in parts
PersonTable              Rows of persons; the rows of one person can be replaced
check_person_sensitivity `fuzz_person_sensitivity` as a finding
check_positions          Check that what a query reads of a row does not depend on its position
check_rows_of_persons    Check that an answer depends on used rows alone, not on order or number
check_shares             Check that weights of rows are what the proofs assume
fuzz_person_sensitivity  Search for two lists of rows of one person that exceed a sensitivity
Laws                     Probabilities of the cells of one answer on two tables
check_choices            Check that a mechanism's choices have the distribution of its cost
check_mechanism_price    `check_price` of one mechanism by itself
check_price              Check that a cost covers what answers with these distributions reveal
check_quote              Check that a whole plan, at its calibrated noise, stays within its budget
check_search_price       Check the cost of the best of a random number of Gaussian trials
worst_laws               Distributions of ``count`` answers on worst-case pairs of tables
Bare                     A query without a problem, in the form that `fuzz_sensitivity` takes
ObjectiveGradient        The gradient of a perturbed objective at a point, as a query
check_certificate        Check that the noise on a minimiser covers every solver that its
                         certificate accepts
check_conversation       Check that an owner's messages are functions of its releases and of the
                         messages it received
ListExample              A query over lists, and the lists around those that are replaced
check_label_batch_price  Check that a sampled release is priced for replaced grades
check_list_batches       Check that a list adds the same to every batch, whatever else is in it
check_list_sensitivity   Check the sensitivity of a query over lists
check_ndcg_grows         Check that a step against the released gradient raises the expected NDCG
list_examples            Every query over lists, with its relation, at random public values
list_ratio               The largest distance between answers on neighbours that a search found,
                         over the sensitivity
opposite_grades          A label statistic, and two tables of grades that move it far
sampled_list_examples    Names of the examples whose queries may be sampled
check_run_noise          Check the noise of a run: scale, freshness and independence
"""

from hushfit.audit.checks._cells import LAYOUTS, check_cells
from hushfit.audit.checks._deterministic import (
    Fuzzed,
    Table,
    check_order,
    check_overwritten,
    check_replay,
    check_sensitivity,
    check_side_channels,
    fitted_on,
    fuzz_sensitivity,
)
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
from hushfit.audit.checks._examples import Example, example_queries, source_for
from hushfit.audit.checks._noise import (
    LEVEL,
    Finding,
    check_moves_on_grid,
    check_release_noise,
    check_sampler,
    check_small_noise,
    noise_findings,
)
from hushfit.audit.checks._parts import check_parts, source_in_parts
from hushfit.audit.checks._persons import (
    PersonTable,
    check_person_sensitivity,
    check_positions,
    check_rows_of_persons,
    check_shares,
    fuzz_person_sensitivity,
)
from hushfit.audit.checks._prices import (
    check_choices,
    check_mechanism_price,
    check_price,
    check_quote,
    check_search_price,
)
from hushfit.audit.checks._ranking import (
    ListExample,
    check_label_batch_price,
    check_list_batches,
    check_list_sensitivity,
    check_ndcg_grows,
    list_examples,
    list_ratio,
    opposite_grades,
    sampled_list_examples,
)
from hushfit.audit.checks._runs import (
    Bare,
    ObjectiveGradient,
    check_certificate,
    check_conversation,
    check_run_noise,
)
from hushfit.audit.checks._worst_laws import Laws, worst_laws
from hushfit.audit.checks.boundary import (
    check_batch_sensitivity,
    check_batches,
    check_disk_ledger,
    check_ledger,
    check_paid,
    check_refusals,
    check_scores,
    check_sealed,
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
    "ListExample",
    "ObjectiveGradient",
    "PersonTable",
    "Table",
    "best_of_gaussians",
    "check_batch_sensitivity",
    "check_batches",
    "check_cells",
    "check_certificate",
    "check_choices",
    "check_conversation",
    "check_disk_ledger",
    "check_exact",
    "check_label_batch_price",
    "check_ledger",
    "check_list_batches",
    "check_list_sensitivity",
    "check_mechanism_price",
    "check_moves_on_grid",
    "check_ndcg_grows",
    "check_order",
    "check_overwritten",
    "check_paid",
    "check_parts",
    "check_person_sensitivity",
    "check_positions",
    "check_price",
    "check_quote",
    "check_refusals",
    "check_release_noise",
    "check_replay",
    "check_rows_of_persons",
    "check_run_noise",
    "check_sampler",
    "check_scores",
    "check_sealed",
    "check_search_price",
    "check_sensitivity",
    "check_shares",
    "check_side_channels",
    "check_small_noise",
    "choice_law",
    "curve_of",
    "exact_cases",
    "exact_findings",
    "example_queries",
    "fitted_on",
    "fuzz_person_sensitivity",
    "fuzz_sensitivity",
    "gate_law",
    "list_examples",
    "list_ratio",
    "noise_findings",
    "opposite_grades",
    "repeated_corner",
    "sampled_list_examples",
    "source_for",
    "source_in_parts",
    "worst_laws",
]
