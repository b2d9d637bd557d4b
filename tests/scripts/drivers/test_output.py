"""The verdict on what several drivers wrote: order by their common clock, and which repeats have a reason."""

import json
import re

import pytest

from coordinator.values.key_hash import hash_key
from coordinator.values.ranges import HashRange
from drivers.output import Held, batches, outcome

SENT = [("a", "0"), ("a", "1"), ("b", "2")]


def line(clock: int, *offsets: int) -> str:
    """A batch of one task that holds those records."""
    deliveries = [[0, offset, *SENT[offset], 0, place] for place, offset in enumerate(offsets)]
    return json.dumps({"clock": clock, "batch": 0, "deliveries": deliveries})


def verdict_of(disturbed: dict[str, list[int]], **lines: list[str]) -> str:
    found = outcome([SENT], [b for driver, texts in lines.items() for b in batches(driver, texts)], disturbed)
    return ("good: " if found.good else "bad: ") + str(found)


@pytest.mark.parametrize(
    ("one", "two", "disturbed", "expected"),
    [
        pytest.param(
            [line(1, 0)],
            [line(2, 1, 2)],
            {},
            "good: 3 records sent: 0 lost, 0 out of order or altered, 0 repeated",
            id="in order",
        ),
        pytest.param(
            [line(2, 0)], [line(1, 1, 2)], {}, "bad: .* 1 out of order", id="a key overtakes itself on another driver"
        ),
        pytest.param([line(1, 0)], [line(2, 1)], {}, "bad: .* 1 lost", id="a record is missing"),
        pytest.param(
            [line(1, 0, 1)],
            [line(2, 0, 1, 2)],
            {"one": [1]},
            "good: .* 2 repeated, 0 of them",
            id="the last batch of a killed driver",
        ),
        pytest.param(
            [line(3, 0, 1)],
            [line(2, 0, 1, 2)],
            {"one": [0, 1]},
            "good: .* 2 repeated, 0 of them",
            id="the late batch of a frozen one",
        ),
        pytest.param(
            [line(1, 0, 1), line(2, 2)],
            [line(3, 0)],
            {"one": [2]},
            "bad: .* 1 repeated, 1 of them",
            id="a batch before the last one was confirmed, and may not come again",
        ),
        pytest.param([line(1, 0, 1, 2)], [line(2, 2)], {}, "bad: .* 1 of them", id="nothing was done to anybody"),
        pytest.param([line(1, 0, 1, 1, 2)], [], {"one": [1]}, "bad: .* 1 repeated, 1 of them", id="twice in one batch"),
    ],
)
def test_outcome(one: list[str], two: list[str], disturbed: dict[str, list[int]], expected: str) -> None:
    assert re.match(expected, verdict_of(disturbed, one=one, two=two))


def test_a_run_without_records_shows_nothing() -> None:
    assert not outcome([[]], [], {}).good


@pytest.mark.parametrize(
    ("one", "two", "seconds"),
    [
        pytest.param([line(9, 0)], [line(4, 2), line(6, 0)], 5.0, id="another driver delivers its key"),
        pytest.param([line(2, 0)], [line(4, 2)], None, id="only it and another key"),
        pytest.param([], [line(1, 0), line(7, 2, 1)], 6.0, id="not an earlier delivery"),
    ],
)
def test_the_first_delivery_of_a_held_key_by_another_driver(
    one: list[str], two: list[str], seconds: float | None
) -> None:
    found = [b for driver, texts in (("one", one), ("two", two)) for b in batches(driver, texts)]
    held = Held(1, "one", {0: (HashRange(hash_key(b"a"), hash_key(b"a")),)}, frozenset())
    after = held.elsewhere_after_s(found)
    assert (None if after is None else round(after * 1e9)) == (None if seconds is None else round(seconds))
