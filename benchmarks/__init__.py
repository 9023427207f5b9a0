"""Accuracy and speed, measured as ratios in one run: ``python -m benchmarks`` from the root of
the repository.
"""
