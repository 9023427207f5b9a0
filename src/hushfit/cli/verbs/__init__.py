"""One module for each verb of the command line; each has a ``command``.

audit       ``hushfit audit``: attack an algorithm, or show how a model's algorithm was attacked
completion  ``hushfit completion``: print the shell completion script
describe    ``hushfit describe``: statistics of a table with intervals, paid for from the ledger
discover    ``hushfit discover``: the frequent labels of columns, found privately and paid for
evaluate    ``hushfit evaluate``: scores of a model on held-out rows
federate    ``hushfit federate``: create a federation of data owners, join one, start a run, and
            follow it
fit         ``hushfit fit``: encode, pay, fit, write the model, in this order
ledger      ``hushfit ledger``: open accounts, show them, and verify that they were not rewritten
owner       ``hushfit owner``: take part in runs with one's own rows, and show requests and spending
plan        ``hushfit plan``: cost and expected accuracy of a fit, from public numbers alone
predict     ``hushfit predict``: labels and probabilities for new rows, encoded as in training
report      ``hushfit report``: one HTML page about a model
schema      ``hushfit schema``: a first draft of the public description of a table, and a
            comparison of one with the rows
studio      ``hushfit studio``: a page in the browser for all of this
"""
