"""A member whose slots are stuck with slow lanes counts for less when ranges are assigned."""

import pytest

from coordinator.assignment.assignors.assignor import Subscriber
from coordinator.assignment.spare import spared
from coordinator.errors import StateFormatError


@pytest.mark.parametrize(
    ("slow", "capacities"),
    [
        pytest.param(("0", "4"), [4, 4], id="below a tenth nothing changes"),
        pytest.param(("45", "0"), [20, 40], id="half of the slots are stuck"),
        pytest.param(("100", "0"), [4, 40], id="a tenth is always left"),
    ],
)
def test_a_member_that_holds_a_slow_key_counts_for_less(slow: tuple[str, str], capacities: list[int]) -> None:
    members = [Subscriber(f"m{i}", 4, frozenset({"t"}), metadata={"slow_percent": s}) for i, s in enumerate(slow)]
    assert [m.capacity for m in spared(members)] == capacities


@pytest.mark.parametrize("percent", ["x", "9" * 20])
def test_a_damaged_part_is_a_named_error(percent: str) -> None:
    with pytest.raises(StateFormatError, match="m-1 reports"):
        spared([Subscriber("m-1", 4, frozenset({"t"}), metadata={"slow_percent": percent})])
