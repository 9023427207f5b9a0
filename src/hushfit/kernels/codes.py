"""Integer codes of the losses in compiled code. A loop raises for an unknown code: it must never
compute another loss.
"""

LOGISTIC = 0
HUBER_HINGE = 1
SQUARED = 2
SOFTMAX = 3
POISSON = 4
# No loss: every slope is one, so that a gradient is the sum of the records.
ONE = 5
SATURATING_SQUARES = 6

CODES = (LOGISTIC, HUBER_HINGE, SQUARED, SOFTMAX, POISSON, SATURATING_SQUARES)
UNKNOWN = (
    "This loop has no branch for the code of the loss. Write one, or use a loss of hushfit.losses. "
    "If there is one, delete hushfit/kernels/__pycache__: loops that were compiled before are kept "
    "there."
)
