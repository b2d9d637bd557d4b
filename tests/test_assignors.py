"""The check of assignments, `range` and `roundrobin` beside Kafka's own, `copartitioned`, and assignors by name."""

import json
import random
import sys
import time
from pathlib import Path

import pytest

from assignor_groups import any_group, changed, shares, some_members, text
from coordinator.assignors.assignor import Assignment, Subscriber
from coordinator.assignors.check import check
from coordinator.assignors.registry import NAMES, assignor
from coordinator.errors import (
    ConsumerRangeFetchNotAcceptedError,
    InvalidAssignmentError,
    InvalidOptionError,
)
from coordinator.key_hash import cuts
from coordinator.ranges import HASH_MAX, WHOLE, HashRange
from coordinator.subscription import TopicPartition

T0, T1, OTHER = TopicPartition("t", 0), TopicPartition("t", 1), TopicPartition("other", 0)
LEFT, RIGHT = cuts(2)
KAFKA = [json.loads(line) for line in Path(__file__).with_name("kafka_assignments.jsonl").read_text().splitlines()]


@pytest.mark.parametrize(
    ("given", "what"),
    [
        pytest.param({}, "nobody is given the hashes from 0000000000000000 on of t-0", id="a partition of nobody"),
        pytest.param({"m0": {T0: (LEFT,)}}, "from 4000000000000000 on of t-0", id="a hole at the end"),
        pytest.param({"m0": {T0: (RIGHT,)}}, "from 0000000000000000 on of t-0", id="a hole at the start"),
        pytest.param(
            {"m0": {T0: (LEFT,)}, "m1": {T0: (HashRange(RIGHT.lo + 1, HASH_MAX),)}},
            "from 4000000000000000 on of t-0",
            id="one hash missing between two members",
        ),
        pytest.param({"m0": {T0: (WHOLE,)}, "m1": {T0: (RIGHT,)}}, "part of it to m0 as well", id="an overlap"),
        pytest.param(
            {"m0": {T0: (HashRange(0, RIGHT.lo),)}, "m1": {T0: (RIGHT,)}}, "part of it to m0", id="one hash given twice"
        ),
        pytest.param({"m0": {T0: (LEFT, LEFT, RIGHT)}}, "overlap or do not ascend", id="one member has a range twice"),
        pytest.param({"m0": {T0: (RIGHT, LEFT)}}, "overlap or do not ascend", id="ranges in no order"),
        pytest.param({"x": {T0: (WHOLE,)}}, "x, which is not a member", id="a stranger"),
        pytest.param(
            {"m0": {T0: (WHOLE,), OTHER: (WHOLE,)}}, "does not subscribe", id="a topic its member does not subscribe to"
        ),
        pytest.param(
            {"m0": {T0: (WHOLE,), T1: (WHOLE,)}}, "t-1 is assigned and does not exist", id="no such partition"
        ),
    ],
)
def test_an_assignment_that_does_not_fit_is_refused(given: Assignment, what: str) -> None:
    with pytest.raises(InvalidAssignmentError, match=what) as refused:
        check(given, some_members(2, "t"), {"t": 1, "other": 1})
    assert refused.value.remedy


def test_a_part_for_a_member_that_does_not_share_is_code_90() -> None:
    members = some_members(2, "t", sharing=False)
    with pytest.raises(ConsumerRangeFetchNotAcceptedError, match="NOT_ACCEPTED: code 90: m0") as refused:
        check({"m0": {T0: (LEFT,)}, "m1": {T0: (RIGHT,)}}, members, {"t": 1})
    assert refused.value.code == 90


def test_several_ranges_and_members_without_any_are_accepted() -> None:
    a, b, c, d = cuts(4)
    check({"m0": {T0: (a, c)}, "m1": {T0: (b, d)}, "m2": {}}, some_members(3, "t"), {"t": 1})


FIVE = [Subscriber(f"c{i}", 1, frozenset({"t1", "t2"})) for i in range(1, 6)]


@pytest.mark.parametrize(
    ("name", "partitions", "expected"),
    [
        pytest.param(
            "roundrobin",
            {"t1": 3},
            {"t1-0": "c1<1/2 c4", "t1-1": "c2<1/2 c5", "t1-2": "c3"},
            id="K: 5 members, 3 partitions, round robin",
        ),
        pytest.param(
            "range",
            {"t1": 2, "t2": 3},
            {"t1-0": "c1<1/3 c2<2/3 c3", "t1-1": "c4<1/2 c5", "t2-0": "c1<1/2 c2", "t2-1": "c3<1/2 c4", "t2-2": "c5"},
            id="R3: 5 members, topics of 2 and 3 partitions, range",
        ),
        pytest.param(
            "roundrobin",
            {"t1": 2, "t2": 3},
            {"t1-0": "c1<1/3 c3<2/3 c5", "t1-1": "c2<1/2 c4", "t2-0": "c1<1/2 c4", "t2-1": "c2<1/2 c5", "t2-2": "c3"},
            id="R3: the same, round robin",
        ),
    ],
)
def test_reverse_assign(name: str, partitions: dict[str, int], expected: dict[str, str]) -> None:
    assert text(assignor(name).assign(FIVE[::-1], partitions, {})) == expected


@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_partitions_choose_only_among_members_that_share(name: str) -> None:
    members = [Subscriber("a", 1, frozenset({"t"}), sharing=False), *some_members(2, "t")]
    assert text(assignor(name).assign(members, {"t": 1}, {})) == {"t-0": "m0<1/2 m1"}


@pytest.mark.parametrize("name", ["range", "roundrobin"])
def test_a_member_that_shares_comes_before_those_that_do_not(name: str) -> None:
    members = [*some_members(3, "t", sharing=False), Subscriber("z", 1, frozenset({"t"}))]
    assert text(assignor(name).assign(members, {"t": 2}, {})) == {"t-0": "m0", "t-1": "z"}


@pytest.mark.parametrize("name", ["range", "roundrobin"])
@pytest.mark.parametrize("sharing", [True, False])
def test_the_same_as_kafka_where_members_do_not_outnumber_partitions_or_do_not_share(
    name: str, *, sharing: bool
) -> None:
    compared = 0
    for group in KAFKA:
        members = [Subscriber(m, 1, frozenset(topics), sharing) for m, topics in group["topics"].items()]
        many = any(sum(t in m.topics for m in members) > count for t, count in group["partitions"].items())
        if not (sharing and many):
            assignment = assignor(name).assign(members, group["partitions"], {})
            assert {m: sorted(map(str, owned)) for m, owned in assignment.items()} == group[name]
            compared += 1
    assert compared >= 40


def test_joined_topics_have_the_same_cuts_and_owners() -> None:
    members = some_members(3, "orders", "payments", "clicks")
    given = assignor("copartitioned").assign(members, {"orders": 2, "payments": 2, "clicks": 4}, {})
    shown = text(given)
    assert [shown[f"orders-{p}"] for p in range(2)] == [shown[f"payments-{p}"] for p in range(2)]
    assert (shown["orders-0"], shown["orders-1"]) == ("m0<2/3 m2", "m1<2/3 m2")
    assert shown["clicks-0"] == "m0"


def test_a_topic_that_joins_others_takes_their_owners_and_moves_none() -> None:
    members, copartitioned = some_members(2, "b", "a"), assignor("copartitioned")
    one, two = members[0], members[1]
    before = copartitioned.assign([two], {"b": 2}, {})
    both = copartitioned.assign([one, two], {"b": 2}, before)
    assert text(copartitioned.assign([one, two], {"b": 2, "a": 2}, both)) == {
        "a-0": "m1", "a-1": "m0", "b-0": "m1", "b-1": "m0"
    }  # fmt: skip


def test_in_any_group_joined_topics_have_the_same_cuts_and_owners() -> None:
    joined = 0
    for seed in range(500):
        rnd = random.Random(seed)
        group = any_group(rnd, equal=seed % 2 == 0)
        before: Assignment = {}
        for _ in range(3):
            before = assignor("copartitioned").assign(group.members, group.partitions, before)
            alike: dict[tuple[frozenset[str], int], set[str]] = {}
            for topic, count in group.partitions.items():
                subscribers = frozenset(m.member for m in group.members if topic in m.topics)
                told = {
                    m: {tp.partition: r for tp, r in of_m.items() if tp.topic == topic} for m, of_m in before.items()
                }
                alike.setdefault((subscribers, count), set()).add(
                    repr(sorted((m, sorted(o.items())) for m, o in told.items()))
                )
                joined += bool(count and subscribers)
            assert {len(assignments) for assignments in alike.values()} == {1}
            group = changed(rnd, group)
    assert joined > 1_500


SEEDS = {"grouped": 400, "range": 3_400, "roundrobin": 3_400, "copartitioned": 1_000}
"""Three groups each; of `grouped`, which `copartitioned` is made of, tests/test_grouped.py sees 10,000 more."""


@pytest.mark.parametrize("name", NAMES)
def test_any_group_is_tiled_and_the_same_again(name: str) -> None:
    for seed in range(SEEDS[name]):
        rnd = random.Random(seed)
        group = any_group(rnd, equal=seed % 2 == 0)
        before: Assignment = {}
        for _ in range(3):
            after = assignor(name).assign(group.members, group.partitions, before)
            check(after, group.members, group.partitions)
            assert assignor(name).assign(group.members[::-1], group.partitions, after) == after
            served = {member for member, size in shares(after).items() if size}
            assert served >= {
                m.member for m in group.members if m.sharing and any(group.partitions[t] for t in m.topics)
            }
            group, before = changed(rnd, group), after


@pytest.mark.parametrize("name", NAMES)
def test_one_assignor_continues_what_any_other_left(name: str) -> None:
    for seed in range(100):
        rnd = random.Random(seed)
        group = any_group(rnd)
        fresh = assignor(name).assign(group.members, group.partitions, {})
        for other in NAMES:
            left = assignor(other).assign(group.members, group.partitions, {})
            check(assignor(name).assign(group.members, group.partitions, left), group.members, group.partitions)
        assert assignor(name).assign(group.members, group.partitions, fresh) == fresh


@pytest.mark.parametrize("name", NAMES)
def test_a_thousand_partitions_and_a_hundred_members_take_well_under_a_second(name: str) -> None:
    rnd = random.Random(1)
    members = [Subscriber(f"m{i}", rnd.randint(1, 16), frozenset({"t"}), rnd.random() < 0.8) for i in range(100)]
    start = time.process_time()
    before = assignor(name).assign(members, {"t": 1000}, {})
    after = assignor(name).assign(members[1:], {"t": 1000}, before)
    check(after, members[1:], {"t": 1000})
    assert time.process_time() - start < 1


OWN = """
class Everything:
    name, version = "everything", 3

    def assign(self, members, partitions, previous):
        return {}


class Nothing:
    pass

class Hidden(Everything):
    @property
    def name(self):
        raise RuntimeError("no name today")

class TwoWords(Everything):
    name = "two words"

class Long(Everything):
    name = 101 * "a"

class Escapes(Everything):
    name = "\\x1b[2J"

class Yes(Everything):
    version = True

class Awaited(Everything):
    async def assign(self, members, partitions, previous):
        return {}

class Yields(Everything):
    def assign(self, members, partitions, previous):
        yield {}

class Wants(Everything):
    def assign(self, members, partitions):
        return {}

class Leaves:
    def __init__(self):
        raise SystemExit("not here")


class Greedy(Everything):
    def __init__(self, wanted):
        pass
"""


@pytest.fixture
def own_module(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    (tmp_path / "own_assignors.py").write_text(OWN)
    (tmp_path / "broken_assignors.py").write_text("1 / 0")
    (tmp_path / "leaving_assignors.py").write_text("exit(3)")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "own_assignors", raising=False)
    return "own_assignors"


def test_assignors_are_found_by_their_names() -> None:
    assert NAMES == ("grouped", "range", "roundrobin", "copartitioned")
    assert [assignor(name).name for name in NAMES] == list(NAMES)


def test_a_users_class_is_made_by_name(own_module: str) -> None:
    made = assignor(f"{own_module}:Everything")
    assert (made.name, made.version) == ("everything", 3)
    assert made.assign([], {}, {}) == {}


@pytest.mark.usefixtures("own_module")
@pytest.mark.parametrize(
    ("name", "what"),
    [
        pytest.param("groped", "did you mean grouped", id="a misspelt name"),
        pytest.param("", "choose one of grouped, range", id="no name"),
        pytest.param("own_assignors:Missing", "AttributeError", id="no such class"),
        pytest.param("no_such_module:A", "ModuleNotFoundError", id="no such module"),
        pytest.param(":A", "is not module:Class", id="no module"),
        pytest.param("own_assignors:", "is not module:Class", id="no class"),
        pytest.param("broken_assignors:A", "ZeroDivisionError", id="a module that fails"),
        pytest.param("leaving_assignors:A", "SystemExit", id="a module that exits"),
        pytest.param("own_assignors:Greedy", "TypeError", id="a class that needs arguments"),
        pytest.param("own_assignors:Nothing", "is not an assignor", id="a class that is none"),
        pytest.param("own_assignors:Hidden", "no name today", id="a name that cannot be read"),
        pytest.param("own_assignors:TwoWords", "its name cannot be used", id="a name of two words"),
        pytest.param("own_assignors:Long", "its name cannot be used", id="a name too long"),
        pytest.param("own_assignors:Escapes", "its name cannot be used", id="a name that moves the cursor"),
        pytest.param("own_assignors:Yes", "its version is not", id="a version that others cannot read"),
        pytest.param("own_assignors:Awaited", "no plain function", id="a coroutine function"),
        pytest.param("own_assignors:Yields", "no plain function", id="a generator"),
        pytest.param("own_assignors:Wants", "does not take", id="a method that takes something else"),
        pytest.param("own_assignors:Leaves", "SystemExit: not here", id="a class that ends the process"),
    ],
)
def test_what_is_no_assignor_is_named(name: str, what: str) -> None:
    with pytest.raises(InvalidOptionError, match=what):
        assignor(name)
