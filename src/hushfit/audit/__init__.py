"""Attack from outside: tests of guarantees by experiment, and checks of everything that can be checked without one."""
