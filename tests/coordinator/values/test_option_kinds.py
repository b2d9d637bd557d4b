"""The limits of options, as errors and docs/options.md say them."""

import pytest

from coordinator.values.option_kinds import Duration, Size

INT = 2**31 - 1


@pytest.mark.parametrize(
    ("most_ms", "said"),
    [
        pytest.param(24 * 3_600_000, "at most 1d", id="a day"),
        pytest.param(1_500, "at most 1500ms", id="no whole seconds"),
        pytest.param(INT, "at most 24d 20h", id="an int of milliseconds, rounded down"),
        pytest.param(INT * 60_000, "at most 1491308d", id="an int of minutes, rounded down"),
    ],
)
def test_the_limit_of_a_duration_is_said_in_units_that_people_read(most_ms: int, said: str) -> None:
    assert Duration(most_ms).limit.endswith(f", {said}")
    assert Duration(most_ms).parse(f"{most_ms}ms") == most_ms, "the limit itself is exact"


@pytest.mark.parametrize(
    ("most", "said"), [(INT, "less than 2GiB"), (1_000, "at most 1000 bytes")], ids=["an int", "a round number"]
)
def test_the_limit_of_a_size_is_said_in_units_that_people_read(most: int, said: str) -> None:
    assert Size(most=most).limit.endswith(f", {said}")
