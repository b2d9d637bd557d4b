"""`range` and `roundrobin`: as Kafka's own, except where members that share outnumber partitions."""

import json
from pathlib import Path

import pytest

from assignor_groups import some_members, text
from coordinator.assignment.assignors.assignor import Subscriber
from coordinator.assignment.assignors.registry import assignor

KAFKA = [json.loads(line) for line in Path(__file__).with_name("kafka_assignments.jsonl").read_text().splitlines()]


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
            id="5 members, topics of 2 and 3 partitions, range",
        ),
        pytest.param(
            "roundrobin",
            {"t1": 2, "t2": 3},
            {"t1-0": "c1<1/3 c3<2/3 c5", "t1-1": "c2<1/2 c4", "t2-0": "c1<1/2 c4", "t2-1": "c2<1/2 c5", "t2-2": "c3"},
            id="5 members, topics of 2 and 3 partitions, round robin",
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
