"""Numbers by which compiled code knows a loss."""

LOGISTIC = 0
HUBER_HINGE = 1
SQUARED = 2
SOFTMAX = 3
