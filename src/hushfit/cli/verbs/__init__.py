"""One module for each verb of the command line; each has a ``command``.

audit       ``hushfit audit``: attack an algorithm, or tell what attacks a model's algorithm has
            withstood
completion  ``hushfit completion``: the script that makes a shell complete verbs and options
evaluate    ``hushfit evaluate``: how good a model is on rows that it has not seen
federate    ``hushfit federate``: found a federation of data owners, join one, lead a run, and
            watch it
fit         ``hushfit fit``: encode, pay, fit, write the model, in this order
ledger      ``hushfit ledger``: open accounts, look at them, and check that nobody has rewritten
            them
owner       ``hushfit owner``: take part in runs with one's own rows, and see what was asked and
            what was spent
plan        ``hushfit plan``: what a fit would cost and yield, from public numbers alone
predict     ``hushfit predict``: labels and probabilities for new rows, encoded as in training
report      ``hushfit report``: one page about a model, for people
schema      ``hushfit schema``: a first draft of the public description of a table, and a
            comparison of one with the rows
"""
