"""`copartitioned`: topics with the same subscribers and partition counts have the same cuts and owners."""

import random

from assignor_groups import any_group, changed, some_members, text
from coordinator.assignment.assignors.assignor import Assignment
from coordinator.assignment.assignors.registry import assignor
from seeds import many


def test_joined_topics_have_the_same_cuts_and_owners() -> None:
    members = some_members(3, "orders", "payments", "clicks")
    given = assignor("copartitioned").assign(members, {"orders": 2, "payments": 2, "clicks": 4}, {})
    shown = text(given)
    assert [shown[f"orders-{p}"] for p in range(2)] == [shown[f"payments-{p}"] for p in range(2)]
    assert (shown["orders-0"], shown["orders-1"]) == ("m0<2/3 m1", "m2<2/3 m1")
    assert shown["clicks-0"] == "m0"


def test_a_topic_that_joins_others_takes_their_owners_and_moves_none() -> None:
    members, copartitioned = some_members(2, "b", "a"), assignor("copartitioned")
    one, two = members[0], members[1]
    before = copartitioned.assign([two], {"b": 2}, {})
    both = copartitioned.assign([one, two], {"b": 2}, before)
    assert text(copartitioned.assign([one, two], {"b": 2, "a": 2}, both)) == {
        "a-0": "m1", "a-1": "m0", "b-0": "m1", "b-1": "m0"
    }  # fmt: skip


@many(range(500))
def test_in_any_group_joined_topics_have_the_same_cuts_and_owners(seeds: range) -> None:
    joined = 0
    for seed in seeds:
        rnd = random.Random(seed)
        group = any_group(rnd, equal=seed % 2 == 0)
        before: Assignment = {}
        for _ in range(3):
            before = assignor("copartitioned").assign(group.members, group.partitions, before)
            alike: dict[tuple[frozenset[str], int], set[str]] = {}
            for topic, count in group.partitions.items():
                subscribers = frozenset(m.member for m in group.members if topic in m.topics)
                owned = {
                    m: {tp.partition: r for tp, r in of_m.items() if tp.topic == topic} for m, of_m in before.items()
                }
                alike.setdefault((subscribers, count), set()).add(
                    repr(sorted((m, sorted(o.items())) for m, o in owned.items()))
                )
                joined += bool(count and subscribers)
            assert {len(assignments) for assignments in alike.values()} == {1}
            group = changed(rnd, group)
    assert joined > 3 * len(seeds)
