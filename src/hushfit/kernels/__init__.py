"""Compiled loops over plain arrays. Nothing here knows what is private; nothing here allocates n x d."""
