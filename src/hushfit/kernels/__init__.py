"""Compiled loops over plain arrays. No function here depends on what is private or allocates an
n x d array.

above_threshold  Growth of a Rényi moment over the queries of an above-threshold gate
choice           Exact sampling of an index with probabilities proportional to exp(-gap), from
                 random bits and integer arithmetic only
codes            Integer codes of the losses in compiled code
coins            Rows of a Poisson batch, from random bits
counting         Fused passes over records with bounded entries
difference       Fused passes over the rows for differences of gradients
gradient         Fused passes over the rows
grid             Addition of noise on a grid
line_search      Fused passes over the rows for line searches
networks         Sums in float64 of the float32 numbers of a network
noise            Exact discrete Gaussian and Laplace noise on the integers, from random bits and
                 integer arithmetic only
packed           Fused passes over packed rows: numbers in single precision and codes of labels
person_ids       Numbers persons by their ids: a hash table of 128-bit keys
persons          Compiled loops over the persons of rows
prox             Proximal operators without a closed form, computed row by row of the coefficients
rows             Compiled loops over single rows
scores           Fused pass for scores, curvatures and covariances of scores
splines          Public maps of single columns, linear between equally spaced knots
threads          One pool of threads for the compiled loops, which all release the interpreter lock
"""
