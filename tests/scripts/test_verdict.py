"""The verdict of the demo: each fault is counted, and only that one."""

import pytest

from verdict import Delivery, Sent, Verdict, judge

SENT: list[Sent] = [("A", "a0"), ("B", "b1"), ("A", "a2"), (None, "n3"), (None, "n4"), ("A", "a5")]


def at(batch: int, input_partition: int, place: int, offset: int) -> Delivery:
    key, value = SENT[offset]
    return Delivery(batch, input_partition, place, offset, key, value)


FINE = [at(0, 0, 0, 0), at(0, 0, 1, 2), at(0, 1, 0, 1), at(0, 1, 1, 4), at(1, 0, 0, 3), at(1, 3, 0, 5)]


@pytest.mark.parametrize(
    ("received", "expected"),
    [
        pytest.param(FINE, Verdict(6), id="each record once and each key in order is good"),
        pytest.param(FINE[::-1], Verdict(6), id="the order in which files are read does not matter"),
        pytest.param(FINE[:-1], Verdict(6, lost=1), id="a record that never came is lost"),
        pytest.param([], Verdict(6, lost=6), id="nothing received is everything lost"),
        pytest.param([*FINE, at(2, 0, 0, 0)], Verdict(6, repeats=1), id="a repeat of an old record is no disorder"),
        pytest.param(
            [at(0, 0, 0, 2), at(0, 0, 1, 0), *FINE[2:]],
            Verdict(6, out_of_order=1),
            id="an older record after a newer one in the same task is out of order",
        ),
        pytest.param(
            [at(2, 0, 0, 0), *FINE[1:5], at(1, 3, 0, 5)],
            Verdict(6, out_of_order=1),
            id="an older record in a later batch is out of order, once",
        ),
        pytest.param(
            [at(0, 0, 0, 0), at(0, 2, 0, 2), *FINE[2:]],
            Verdict(6, out_of_order=1),
            id="a key in two tasks of one batch is out of order even if the offsets rise",
        ),
        pytest.param(
            [at(0, 0, 0, 5), at(0, 0, 1, 0), at(0, 0, 2, 2), at(0, 1, 0, 1), at(0, 1, 1, 4), at(0, 2, 0, 3)],
            Verdict(6, out_of_order=2),
            id="every record that comes after a newer one counts",
        ),
        pytest.param(
            [*FINE[:-1], Delivery(1, 3, 0, 5, "A", "other")],
            Verdict(6, altered=1),
            id="another value than was sent is altered",
        ),
        pytest.param(
            [*FINE, Delivery(1, 3, 1, 6, "A", "more")],
            Verdict(6, altered=1),
            id="a record that no producer sent is altered",
        ),
    ],
)
def test_verdict(received: list[Delivery], expected: Verdict) -> None:
    assert judge(SENT, received) == expected
    assert judge(SENT, received).good is (expected == Verdict(6))


def test_a_good_verdict_has_the_usual_words() -> None:
    assert str(Verdict(6)) == (
        "6 flights sent, each received exactly once: 0 repeats, 0 lost, 0 out of order within a plane"
    )


def test_a_bad_verdict_has_every_count() -> None:
    assert str(Verdict(6, 1, 2, 3, 4)) == (
        "6 flights sent: 1 repeats, 2 lost, 4 out of order within a plane, 3 altered"
    )
