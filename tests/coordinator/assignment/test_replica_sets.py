"""Replica sets: where a new member goes, and who moves to a set without members."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator.assignment.replica_sets import Move, Sets, lightest, move, names

CAPACITIES = st.dictionaries(st.sampled_from([f"m-{i}" for i in range(9)]), st.integers(1, 4), max_size=5)


def test_the_first_set_has_the_name_of_the_group() -> None:
    assert names("orders", 3) == ("orders", "orders@2", "orders@3")
    assert names("orders", 1) == ("orders",)


@pytest.mark.parametrize(
    ("sets", "chosen"),
    [
        pytest.param({"g": {}, "g@2": {}}, "g", id="the first of equal ones"),
        pytest.param({"g": {"m-1": 1}, "g@2": {}}, "g@2", id="one without members"),
        pytest.param({"g": {"m-1": 4}, "g@2": {"m-2": 1, "m-3": 2}}, "g@2", id="by capacity, not by number"),
    ],
)
def test_a_new_member_goes_to_the_set_with_the_least_capacity(sets: Sets, chosen: str) -> None:
    assert lightest(sets) == chosen


@pytest.mark.parametrize(
    ("sets", "moves"),
    [
        pytest.param({"g": {"m-1": 1}, "g@2": {"m-2": 1}}, None, id="each set has a member"),
        pytest.param({"g": {"m-1": 1}, "g@2": {}}, None, id="the only member of a set stays"),
        pytest.param({"g": {"m-1": 2, "m-2": 1}, "g@2": {}}, Move("m-2", "g@2"), id="the smallest member moves"),
        pytest.param({"g": {"m-2": 1, "m-1": 1}, "g@2": {}}, Move("m-1", "g@2"), id="of equal ones the first id"),
        pytest.param(
            {"g": {}, "g@2": {"m-1": 1, "m-2": 1}, "g@3": {"m-3": 2, "m-4": 1}}, Move("m-4", "g"),
            id="from the set with the most capacity",
        ),
    ],
)  # fmt: skip
def test_a_set_without_members_gets_one(sets: Sets, moves: Move | None) -> None:
    assert move(sets, ()) == moves


def test_of_many_equal_members_the_first_id_moves() -> None:
    """Each process iterates over a set of texts in an order of its own."""
    assert move({"g": {f"m-{n}": 1 for n in range(100, 200)}, "g@2": {}}, ()) == Move("m-100", "g@2")


def test_a_member_that_cannot_move_stays_and_another_one_moves() -> None:
    sets = {"g": {"m-1": 4, "m-2": 8}, "g@2": {}}
    assert move(sets, {"m-1"}) == Move("m-2", "g@2")
    assert move(sets, {"m-1", "m-2"}) is None


@given(st.lists(CAPACITIES, min_size=1, max_size=4))
def test_after_some_moves_each_set_has_a_member_if_there_are_enough(found: list[dict[str, int]]) -> None:
    sets = {f"g@{n}": {f"{n}-{member}": c for member, c in of.items()} for n, of in enumerate(found)}
    before = {member for of in sets.values() for member in of}
    for _ in sets:
        if due := move(sets, ()):
            (giver,) = (of for of in sets.values() if due.member in of)
            sets[due.to][due.member] = giver.pop(due.member)
            assert giver, "the set that gives keeps a member"
    assert move(sets, ()) is None
    assert {member for of in sets.values() for member in of} == before
    assert sum(map(bool, sets.values())) == min(len(sets), len(before))
