"""Ids and numbers of a group: each is accepted in its form, and refused in any other."""

from collections.abc import Callable

import pytest

from coordinator.errors import StateFormatError
from coordinator.values import identifiers


@pytest.mark.parametrize(
    ("read", "value"),
    [
        (identifiers.topic, "orders.v1_a-b"),
        (identifiers.topic, "t" * 249),
        (identifiers.topic_id, "-"),
        (identifiers.topic_id, "4fVqJ0hYQ7u_-x"),
        (identifiers.member, "m-7f31c0de"),
        (identifiers.lane_epoch, "9c41ab03.17"),
        (identifiers.lane_epoch, "-"),
        (identifiers.group, "orders of today"),
        (identifiers.group, "g" * identifiers.GROUP_NAME_MAX),
    ],
)
def test_an_id_is_returned_as_it_is(read: Callable[[object], str], value: str) -> None:
    assert read(value) == value


@pytest.mark.parametrize(
    ("read", "value"),
    [
        pytest.param(identifiers.topic, "", id="a topic without a name"),
        pytest.param(identifiers.topic, "t" * 250, id="a topic of 250 letters"),
        pytest.param(identifiers.topic, "a b", id="a topic with a space"),
        pytest.param(identifiers.topic, "orders\n", id="a topic with a newline"),
        pytest.param(identifiers.topic_id, "x" * 65, id="a topic id of 65 letters"),
        pytest.param(identifiers.member, "", id="a member without an id"),
        pytest.param(identifiers.member, 7, id="a member that is a number"),
        pytest.param(identifiers.lane_epoch, "9c41ab03.017", id="a lane epoch with a zero in front"),
        pytest.param(identifiers.lane_epoch, "9C.1", id="a lane epoch in capital letters"),
        pytest.param(identifiers.lane_epoch, "9c", id="a lane epoch without a counter"),
        pytest.param(identifiers.group, " ", id="a group named by a space"),
        pytest.param(identifiers.group, "a\nb", id="a group with a newline"),
        pytest.param(identifiers.group, "g" * 256, id="a group of 256 letters"),
        pytest.param(identifiers.partition, "07", id="a partition with a zero in front"),
        pytest.param(identifiers.partition, "-1", id="a negative partition"),
        pytest.param(identifiers.partition, "9" * 5000, id="a partition of thousands of digits"),
        pytest.param(identifiers.partition, str(2**31), id="a partition beyond 31 bits"),
        pytest.param(identifiers.partition, "\u0667", id="a partition in another script's digits"),
    ],
)
def test_anything_else_is_refused(read: Callable[[object], object], value: object) -> None:
    with pytest.raises(StateFormatError):
        read(value)


@pytest.mark.parametrize("value", [-1, 11, 1.0, "1", True, None])
def test_a_number_that_is_not_whole_or_out_of_bounds_is_refused_by_name(value: object) -> None:
    with pytest.raises(StateFormatError, match=r"the size .* is not a whole number from 0 to 10"):
        identifiers.number(value, 10, "the size")


def test_a_number_and_a_partition_are_returned() -> None:
    assert identifiers.number(10, 10, "the size") == 10
    assert identifiers.partition("2147483647") == identifiers.PARTITION_MAX
