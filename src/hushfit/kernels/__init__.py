"""Compiled loops over plain arrays. Nothing here knows what is private; nothing here allocates n x
d.

above_threshold  The growth of a moment over the queries of an above-threshold gate
choice           An exact choice among many with probabilities in proportion to exp(-gap), from
                 random bits and integer arithmetic only
codes            Numbers by which compiled code knows a loss
coins            Which rows a Poisson batch takes, from random digits or from random gaps
difference       Fused passes over the rows for differences of gradients
gradient         Fused passes over the rows
grid             Where an exact answer meets its noise
line_search      Fused passes over the rows for line searches
noise            Exact discrete Gaussian and Laplace noise on the integers, from random bits and
                 integer arithmetic only
prox             Proxes that need a loop
rows             Compiled loops over single rows
threads          One pool of threads for the compiled loops, which all release the interpreter lock
"""
