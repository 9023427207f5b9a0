"""What is public about a column."""

from dataclasses import dataclass


@dataclass(frozen=True)
class InputColumn:
    """What is public about a column with values in [0, 1].

    Parameters
    ----------
    name : str
    steps : int, optional
        How many steps its values make from the lowest to the highest, such as high - low for whole
        numbers: 1 for two values. None if it may have fractions.
    fill : float, optional
        What a missing value becomes, in [0, 1]. The column then gets an indicator too.
    from_zero : bool, default=False
        Whether its range starts at zero, as those of amounts, counts and durations do: such
        numbers crowd at the low end.
    """

    name: str
    steps: int | None = None
    fill: float | None = None
    from_zero: bool = False

    @property
    def is_numeric(self) -> bool:
        """Whether it may have more than two values."""
        return self.steps is None or self.steps > 1
