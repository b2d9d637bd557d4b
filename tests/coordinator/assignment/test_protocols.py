"""Which assignor a group uses, and who cannot work with it (rule: common-assignor)."""

import pytest

from coordinator.assignment.assignment_text import fields_of, seniority, subscriber
from coordinator.assignment.assignors.registry import assignors
from coordinator.assignment.protocols import Protocol, agree, preferences_of, preferences_text
from coordinator.errors import InvalidOptionError, StateFormatError

V0, V1, RANGE = Protocol("mine", 0), Protocol("mine", 1), Protocol("range", 1)


@pytest.mark.parametrize(
    ("members", "chosen", "excluded"),
    [
        pytest.param({"A": [V0], "B": [V0], "C": [V1]}, V0, {"C"}, id="the last member is refused, the others go on"),
        pytest.param({"A": [V1], "B": [V0], "C": [V0]}, V1, {"B", "C"}, id="also if the later members are more"),
        pytest.param(
            {"A": [V0, V1], "B": [V1, RANGE], "C": [RANGE]}, V1, {"C"}, id="an assignor that two share excludes a third"
        ),
        pytest.param({"A": [V0], "B": [V1], "C": [V0]}, V0, {"B"}, id="a refused member excludes no later member"),
    ],
)
def test_a_new_member_that_shares_no_assignor_with_earlier_members_is_excluded(
    members: dict[str, list[Protocol]], chosen: Protocol, excluded: set[str]
) -> None:
    agreement = agree(members)
    assert (agreement.protocol, set(agreement.excluded)) == (chosen, excluded)


def test_the_reason_names_the_members_that_exclude_an_assignor() -> None:
    reason = agree({"A": [V1, V0], "B": [V0], "C": [V1, RANGE]}).excluded["C"]
    assert reason == "C knows mine 1, unknown to B; range 1, unknown to A, B; all others know mine 0, unknown to C"


def test_the_order_of_joining_is_time_then_name() -> None:
    def member(name: str, joined_at: str) -> object:
        return subscriber(name, fields_of(frozenset(), 1, [V0], sharing=True) | {"joined_at": joined_at})

    assert list(seniority([member("b", "10"), member("c", "9"), member("a", "10")])) == ["c", "a", "b"]  # type: ignore[list-item]


def test_preferences_are_read_as_they_were_written() -> None:
    assert preferences_of(preferences_text([V1, V0, RANGE])) == (V1, V0, RANGE)


@pytest.mark.parametrize(
    "text", ["", "mine", "mine x", " 1", "mine 1,,range 1", "mine -1", "mine ٣", "mine " + "9" * 20]
)
def test_damaged_preferences_are_a_named_error(text: str) -> None:
    with pytest.raises(StateFormatError, match="name and version"):
        preferences_of(text)


@pytest.mark.parametrize("at", ["soon", "9" * 20])
def test_a_damaged_time_of_joining_names_the_member(at: str) -> None:
    with pytest.raises(StateFormatError, match="member m-1 joined at"):
        seniority([subscriber("m-1", fields_of(frozenset(), 1, [V0], sharing=True) | {"joined_at": at})])


@pytest.mark.parametrize("name", ["capacity", "joined_at", "protocols"])
def test_a_member_without_a_field_that_each_member_writes_is_a_named_error(name: str) -> None:
    fields = {
        k: v for k, v in (fields_of(frozenset(), 1, [V0], sharing=True) | {"joined_at": "10"}).items() if k != name
    }
    with pytest.raises(StateFormatError, match="member m-1"):
        seniority([subscriber("m-1", fields)])


def test_assignors_are_listed_by_preference() -> None:
    assert [a.name for a in assignors("roundrobin, grouped")] == ["roundrobin", "grouped"]


@pytest.mark.parametrize(
    ("names", "words"),
    [
        pytest.param("range,groupd", "assignor 'groupd' does not exist", id="one of them does not exist"),
        pytest.param("range,grouped,range", "range 1 is named twice", id="one of them twice"),
        pytest.param("", "assignor '' does not exist", id="none at all"),
    ],
)
def test_a_wrong_list_of_assignors_is_refused(names: str, words: str) -> None:
    with pytest.raises(InvalidOptionError, match=words):
        assignors(names)


def test_nobody_reports_assignors__the_error_has_a_name_and_a_remedy() -> None:
    with pytest.raises(StateFormatError) as error:
        agree({})
    assert str(error.value) == (
        "STATE_FORMAT: no member of the group reports its assignors. Remedy: restart its queries."
    )
