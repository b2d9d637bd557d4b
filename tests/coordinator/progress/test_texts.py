"""Each text that a group writes parses back: the mirror's, those of Redis, the offset of a checkpoint."""

import json

from hypothesis import given
from hypothesis import strategies as st

from coordinator.progress import mirror
from coordinator.progress.growth import Growth
from coordinator.progress.leader_epochs import Extent, parsed
from coordinator.progress.ownership import Fact
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.redis.group_state import KnownTopic
from coordinator.redis.position_verbs import facts_of
from coordinator.values import identifiers
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import OffsetRange, union
from coordinator.values.subscription import NO_ID, Topic, TopicPartition

ids = st.one_of(st.just(NO_ID), st.uuids().map(str), st.from_regex(r"[A-Za-z0-9._-]{1,22}", fullmatch=True))
resets = st.integers(0, identifiers.RESET_MAX)
positions = st.integers(0, identifiers.POSITION_MAX)
extents = st.builds(Extent, st.integers(0, identifiers.LEADER_EPOCH_MAX), positions)
policies = st.none() | st.tuples(st.booleans(), st.booleans())
TP = TopicPartition("orders", 1)


@st.composite
def growths(draw: st.DrawFn, topic_id: str) -> Growth:
    seen, grace, late = draw(st.integers(0, 10**13)), draw(st.integers(1, 10**9)), draw(st.booleans())
    growth = Growth("orders", topic_id, 1, draw(st.integers(2, 9)), seen, seen + grace, late=late)
    ends = draw(st.booleans()) and tuple(draw(positions) for _ in growth.holding)
    return Growth("orders", topic_id, 1, growth.new, seen, seen + grace, ends or (), late=late)


@given(st.data(), ids, resets, positions)
def test_an_entry_of_the_mirror(data: st.DataObject, topic_id: str, reset: int, position: int) -> None:
    growth, extent = data.draw(st.none() | growths(topic_id)), data.draw(st.none() | extents)
    policy, founding = data.draw(policies), data.draw(st.from_regex("[0-9a-f]{8}", fullmatch=True))
    made = mirror.entries(
        {TP: position},
        reset,
        {"orders": topic_id},
        [growth] if growth else [],
        {TP: extent} if extent else {},
        lambda _: policy,
        founding,
    )
    topics = {"orders": Topic("orders", topic_id, (0, 1))}
    assert mirror.of_this_schema(made, "g") == mirror.usable(made, topics) == made
    assert mirror.mirrored(made, topics) == {TP: min(position, extent.end if extent else position)}
    assert (mirror.latest_reset(made), mirror.foundings(made)) == (reset, {TP: founding})
    assert mirror.policies(made) == (policy and (policy[0], frozenset() if policy[1] else frozenset({"orders"})))
    assert mirror.extents(made, topics) == ({TP: Extent(extent.epoch, min(position, extent.end))} if extent else {})
    found = {(g.old, g.new, g.seen_ms, g.until_ms, g.late) for g in mirror.growths(made, topics)}
    waits = growth and not growth.passed({TP: position})
    assert found == ({(1, growth.new, growth.seen_ms, growth.until_ms, growth.late)} if growth and waits else set())


@given(st.data(), ids, resets)
def test_the_texts_of_redis(data: st.DataObject, topic_id: str, reset: int) -> None:
    topic = KnownTopic(topic_id, data.draw(st.integers(1, 100_000)))
    assert KnownTopic.parse("orders", str(topic)) == topic
    growth, extent = data.draw(growths(topic_id)), data.draw(extents)
    assert Growth.parse(growth.field, growth.value) == growth
    assert parsed({TP: extent.text(reset, topic_id)}, reset, {"orders": topic_id}) == {TP: extent}


@given(st.lists(positions, min_size=1, max_size=4))
def test_a_proof_of_a_position(found: list[int]) -> None:
    proofs = tuple(Fact(hashes, at, "a1.1") for hashes, at in zip(cuts(len(found)), found, strict=True))
    assert facts_of("".join(f"{f.hashes} {f.epoch} {f.done};" for f in proofs)) == proofs


@given(st.data(), ids, resets)
def test_the_offset_of_a_checkpoint(data: st.DataObject, topic_id: str, reset: int) -> None:
    lane = st.lists(st.tuples(st.integers(0, 200), st.integers(1, 20)), max_size=3)
    reads = [union(OffsetRange(a, a + n) for a, n in data.draw(lane)) for _ in range(data.draw(st.integers(1, 3)))]
    at = data.draw(positions)
    lanes = tuple(Lane(h, "a1.1", r[0].start if r else at, r) for h, r in zip(cuts(len(reads)), reads, strict=True))
    epochs = {TP: data.draw(st.integers(0, identifiers.LEADER_EPOCH_MAX))} if data.draw(st.booleans()) else {}
    offset = StreamOffset("g", "m-1", reset, {"orders": topic_id}, {TP: lanes}, epochs, founding="9c41ab03")
    assert StreamOffset.from_json(json.loads(json.dumps(offset.to_json()))) == offset
