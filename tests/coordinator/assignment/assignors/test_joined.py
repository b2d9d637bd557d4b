"""The assignor of `copartition`: its topics have the same cuts and owners, whatever else the group reads."""

import random
from collections import Counter
from dataclasses import replace

import pytest

from assignor_groups import any_group, changed, shares, some_members, text
from coordinator.assignment.assignors.assignor import Assignment, Assignor, Subscriber
from coordinator.assignment.assignors.check import check
from coordinator.assignment.assignors.joined import Joined, equal_counts
from coordinator.assignment.assignors.registry import NAMES, assignor
from coordinator.values.ranges import HashRange
from seeds import many

JOINED = Joined(("t1", "t0"))


def reads(query: str, *topics: str, capacity: int = 1) -> Subscriber:
    """A member that reads some topics for a query."""
    name = f"{query}-{'-'.join(topics)}"
    return Subscriber(name, capacity, frozenset(topics), metadata={"query": query} if query else {})


def test_its_name_holds_the_topics_in_one_order() -> None:
    assert JOINED.name == Joined(("t0", "t1")).name == "copartition=t0+t1"


def test_joined_topics_have_the_same_cuts_and_owners_beside_other_topics() -> None:
    given = text(Joined(("a", "b")).assign(some_members(3, "a", "b", "c"), {"a": 2, "b": 2, "c": 2}, {}))
    assert [given["a-0"], given["a-1"]] == [given["b-0"], given["b-1"]] == ["m0<2/3 m1", "m2<2/3 m1"]
    assert (given["c-0"], given["c-1"]) == ("m0<2/3 m1", "m2<2/3 m1")


def test_a_member_that_reads_one_of_the_topics_gets_none_of_it_beside_members_that_read_all() -> None:
    members = [reads("", "a", "b"), reads("", "a", "b", "c"), reads("", "a"), reads("", "c")]
    given = text(Joined(("a", "b")).assign(members, {"a": 1, "b": 1, "c": 1}, {}))
    assert given["a-0"] == given["b-0"] == "-a-b<1/2 -a-b-c"
    assert given["c-0"] == "-a-b-c<1/2 -c"


def test_the_reads_of_one_query_are_one_owner() -> None:
    members = [reads("q", "a"), reads("q", "b"), reads("r", "a", capacity=3), reads("r", "b", capacity=4)]
    given = text(Joined(("a", "b")).assign(members, {"a": 1, "b": 1}, {}))
    assert given == {"a-0": "r-a<3/4 q-a", "b-0": "r-b<3/4 q-b"}  # with the lower capacity of the two


def test_a_query_counts_once_it_reads_all_of_the_topics() -> None:
    a, members = Joined(("a", "b")), [reads("q", "a"), reads("q", "b"), reads("r", "a")]
    before = a.assign(members, {"a": 1, "b": 1}, {})
    assert text(before) == {"a-0": "q-a", "b-0": "q-b"}
    after = a.assign([*members, reads("r", "b")], {"a": 1, "b": 1}, before)
    assert text(after) == {"a-0": "q-a<1/2 r-a", "b-0": "q-b<1/2 r-b"}
    assert text(a.assign([*members[:2], reads("r", "b")], {"a": 1, "b": 1}, after)) == text(before), "r has lost a read"


def test_topics_of_queries_that_read_one_each_are_assigned_all_the_same() -> None:
    given = Joined(("a", "b")).assign([reads("q", "a"), reads("r", "b")], {"a": 2, "b": 2}, {})
    assert text(given) == {"a-0": "q-a", "a-1": "q-a", "b-0": "r-b", "b-1": "r-b"}


def test_a_topic_that_is_new_to_the_group_takes_the_owners_of_the_other() -> None:
    a, both = Joined(("a", "b")), some_members(2, "a", "b")
    before = {both[1].member: a.assign([replace(both[1], topics=frozenset("b"))], {"b": 2}, {})[both[1].member]}
    after = a.assign(both, {"a": 2, "b": 2}, before)
    assert text(after)["a-0"] == text(after)["b-0"]
    assert {text(after)[f"b-{p}"] for p in range(2)} == {"m0", "m1"}
    assert shares(after) == {"m0": 2 << 63, "m1": 2 << 63}


def owners(assignment: Assignment, topic: str, query: dict[str, str]) -> Counter[tuple[int, HashRange, str]]:
    """Partition, hashes and owner of each range of a topic."""
    return Counter(
        (tp.partition, h, query[m])
        for m, owned in assignment.items()
        for tp, ranges in owned.items()
        if tp.topic == topic
        for h in ranges
    )


def by_query(rnd: random.Random, members: list[Subscriber]) -> list[Subscriber]:
    """Some members in two: a read of t0 and a read of the other topics, of one query."""
    found = []
    for m in members:
        if rnd.random() < 0.5 or not m.topics > {"t0"}:
            found.append(m)
        else:
            query = {"query": f"query of {m.member}"}
            found.append(replace(m, topics=frozenset({"t0"}), metadata=query))
            found.append(replace(m, member=f"{m.member}b", topics=m.topics - {"t0"}, metadata=query))
    return found


@many(range(600))
def test_any_group_is_tiled_and_joined_topics_have_the_same_cuts_and_owners(seeds: range) -> None:
    together = Counter[str]()
    for seed in seeds:
        rnd = random.Random(seed)
        group = any_group(rnd, equal=seed % 2 == 0)
        before: Assignment = {}
        for _ in range(3):
            group = replace(group, partitions=group.partitions | {"t1": group.partitions["t0"]})
            members = by_query(rnd, group.members)
            after = JOINED.assign(members, group.partitions, before)
            check(after, members, group.partitions)
            assert JOINED.assign(members[::-1], group.partitions, after) == after
            query = {m.member: m.metadata.get("query", m.member) for m in members}
            if group.partitions["t0"] and any({"t0", "t1"} <= m.topics for m in group.members):
                assert owners(after, "t0", query) == owners(after, "t1", query)
                together["queries" if len(members) > len(group.members) else "members"] += 1
            group, before = changed(rnd, group), after
    assert min(together.values()) > len(seeds) / 6
    assert len(together) == 2


@pytest.mark.parametrize("name", NAMES)
def test_it_continues_from_the_assignment_of_each_other_assignor(name: str) -> None:
    for seed in range(100):
        group = any_group(random.Random(seed))
        left = assignor(name).assign(group.members, group.partitions, {})
        check(JOINED.assign(group.members, group.partitions, left), group.members, group.partitions)


@pytest.mark.parametrize(
    ("counts", "assigned"),
    [
        pytest.param({"orders": 2, "payments": 2, "clicks": 3}, {}, id="equal, and another topic"),
        pytest.param({"orders": 2, "payments": 4, "clicks": 1}, {"payments": 2}, id="one grew first"),
        pytest.param({"orders": 2}, {}, id="a topic that does not exist yet"),
        pytest.param({}, {}, id="no topic"),
    ],
)
def test_joined_topics_are_assigned_as_far_as_all_have_partitions(
    counts: dict[str, int], assigned: dict[str, int]
) -> None:
    assert equal_counts(("orders", "payments"), counts) == counts | assigned


def test_it_is_an_assignor() -> None:
    made: Assignor = JOINED
    assert (made.version, " " in made.name, "," in made.name) == (1, False, False)
