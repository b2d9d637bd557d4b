"""Pinned members on a real broker and a real Redis, without Spark: quarters, spares, overlaps, losses."""

import re
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from command_runs import Run
from coordinator.assignment.rebalance import union
from coordinator.errors import InconsistentGroupProtocolError, OverlappingRangesError
from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.tools.operations.views import view
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, HashRange
from coordinator.values.subscription import Assigned, TopicPartition
from group_services import UNLIMITED, Group, batch, batches, beating, beats, slices_read, subscribed
from resets import reset
from streams import eventually, keyed

LOWER, UPPER = cuts(2)
QUARTERS = cuts(4)
SESSION_MS = 20_000  # a lease that outlives a slow machine's pauses


def pinned(members: Group, tp: TopicPartition, *hashes: HashRange, session_ms: int = SESSION_MS) -> Service:
    """A query that names these hashes, after its first call."""
    return members.started(Assigned({tp: hashes}, pinned=True), session_ms=session_ms)


def empty(members: Group) -> StreamOffset:
    """The start of a query with an empty checkpoint."""
    return StreamOffset(members.name)


def confirmed(members: Group, service: Service, start: StreamOffset | None = None) -> StreamOffset:
    """The last offset of a query that has read everything it may, and has committed it."""
    return [start or empty(members), *batches(service, start or empty(members))][-1]


def hashes(end: StreamOffset, tp: TopicPartition) -> tuple[HashRange, ...]:
    """What the lanes of an offset cover."""
    return union(row.hashes for row in end.rows.get(tp, ()))


def positions(members: Group, tp: TopicPartition) -> dict[HashRange, int]:
    return dict(members.state.segments[tp])


def test_four_members_read_a_quarter_each_and_all_of_it(members: Group, tp: TopicPartition) -> None:
    ends = [confirmed(members, pinned(members, tp, quarter)) for quarter in QUARTERS]
    assert [hashes(end, tp) for end in ends] == [(quarter,) for quarter in QUARTERS]
    assert positions(members, tp) == dict.fromkeys(QUARTERS, 5)
    seen = view(members.name, members.state)
    assert (seen.state, seen.generation, seen.assignor, seen.unread) == ("Stable", 4, "pinned", ())


def test_a_spare_with_an_empty_checkpoint_waits_and_goes_on_at_the_position(members: Group, tp: TopicPartition) -> None:
    first = pinned(members, tp, LOWER)
    done = confirmed(members, first)
    members.kafka.produce(tp.topic, keyed(4, first=5))
    spare = pinned(members, tp, LOWER)
    with ThreadPoolExecutor(1) as own_thread:
        waiting: Future[StreamOffset | None] = own_thread.submit(spare.next_offset, empty(members), UNLIMITED)
        with beating(first):
            batch(first, done)
            assert not waiting.done(), "the first one lives"
        members.lose(first)
        found = waiting.result()
    assert found is not None
    assert hashes(found, tp) == (LOWER,)
    assert {(s.offsets.start, s.offsets.until) for s in found.slices} == {(5, 9)}, "at its position"
    assert slices_read(spare, found) == tuple(sorted(found.slices))
    assert spare.next_offset(found, UNLIMITED) is None
    assert positions(members, tp) == {LOWER: 9, UPPER: 0}


def test_a_part_of_the_ranges_of_a_living_member_is_refused(members: Group, tp: TopicPartition) -> None:
    first, other = pinned(members, tp, LOWER), pinned(members, tp, *QUARTERS[1:3])
    confirmed(members, first)
    with ThreadPoolExecutor(1) as own_thread:
        refused = own_thread.submit(other.next_offset, empty(members), UNLIMITED)
        eventually(lambda: beats(first) and refused.done(), "the lease of the first grows")
    what = f"names hashes that member {first.member} of group {members.name!r} reads: {tp} {QUARTERS[1]}"
    with pytest.raises(OverlappingRangesError, match=re.escape(what)):
        refused.result()
    assert confirmed(members, first) is not None, "the first one goes on"


def test_a_part_of_the_ranges_of_a_dead_member_waits_for_the_end_of_its_lease(
    members: Group, tp: TopicPartition
) -> None:
    dead = pinned(members, tp, LOWER)
    confirmed(members, dead)
    members.kafka.produce(tp.topic, keyed(4, first=5))
    heir = pinned(members, tp, QUARTERS[0])
    with members.losing(dead):
        quarter = confirmed(members, heir)
    assert hashes(quarter, tp) == (QUARTERS[0],)
    assert positions(members, tp) == {QUARTERS[0]: 9, QUARTERS[1]: 5, UPPER: 0}


@pytest.mark.parametrize("first_is_pinned", [True, False], ids=["assigned after pinned", "pinned after assigned"])
def test_the_other_kind_is_refused(members: Group, tp: TopicPartition, first_is_pinned: bool) -> None:
    def assigned() -> Service:
        return members.started(subscribed(tp), session_ms=SESSION_MS)

    first = pinned(members, tp, LOWER) if first_is_pinned else assigned()
    confirmed(members, first)
    second = assigned() if first_is_pinned else pinned(members, tp, LOWER)
    with ThreadPoolExecutor(1) as own_thread:
        refused = own_thread.submit(second.next_offset, empty(members), UNLIMITED)
        eventually(lambda: beats(first) and refused.done(), "the lease of the first grows")
    with pytest.raises(InconsistentGroupProtocolError, match=f"member {first.member} of group"):
        refused.result()
    first.leave()
    confirmed(members, assigned() if first_is_pinned else pinned(members, tp, LOWER))
    assert set(positions(members, tp).values()) == {5}


def test_halves_become_quarters_at_their_positions(members: Group, tp: TopicPartition) -> None:
    lower = pinned(members, tp, LOWER)
    confirmed(members, lower)
    lower.leave()
    members.kafka.produce(tp.topic, keyed(4, first=5))
    ends = [confirmed(members, pinned(members, tp, quarter)) for quarter in QUARTERS]
    starts = {s.offsets.start for end in ends[:2] for s in end.slices}
    assert starts <= {5}
    assert positions(members, tp) == dict.fromkeys(QUARTERS, 9)


def test_a_restart_with_other_ranges_frees_those_of_before(members: Group, tp: TopicPartition) -> None:
    end = batch(pinned(members, tp, LOWER), empty(members))
    again = pinned(members, tp, QUARTERS[0])
    confirmed(members, again, end)
    assert again.member == end.member
    assert {h: m for h, _, m in members.state.owners[tp]} == {QUARTERS[0]: again.member}
    assert positions(members, tp) == {QUARTERS[0]: 5, QUARTERS[1]: 5, UPPER: 0}


def test_a_restart_with_another_partition_frees_the_one_of_before(members: Group, tp: TopicPartition) -> None:
    members.kafka.add_partitions(tp.topic, 2)
    end = batch(pinned(members, tp, WHOLE), empty(members))
    other = TopicPartition(tp.topic, 1)
    again = pinned(members, other, WHOLE)
    confirmed(members, again, end)
    assert members.state.owners == {tp: (), other: ((WHOLE, *members.state.owners[other][0][1:]),)}
    assert positions(members, tp) == {WHOLE: 5}


def test_available_now_ends_once_its_own_ranges_are_done(members: Group, tp: TopicPartition) -> None:
    service = pinned(members, tp, LOWER)
    service.set_targets()
    end = confirmed(members, service)
    assert hashes(end, tp) == (LOWER,)
    assert members.state.leaving == {service.member}
    assert positions(members, tp) == {LOWER: 5, UPPER: 0}


def test_describe_says_what_nobody_reads(members: Group, tp: TopicPartition, run: Run) -> None:
    service = pinned(members, tp, LOWER)
    confirmed(members, service)
    code, out, _ = run("describe", members.name, "--redis", members.redis_url)
    assert code == 0
    assert "Stable, generation 1 of pinned members" in out
    assert f"No pinned member reads: {tp} {UPPER}" in " ".join(out.split())
    assert "unread" in members.events


def test_a_new_partition_is_not_read(members: Group, tp: TopicPartition) -> None:
    service = pinned(members, tp, WHOLE)
    end = confirmed(members, service)
    members.kafka.add_partitions(tp.topic, 2)
    members.kafka.produce(tp.topic, keyed(20))
    members.clock.skip(2_000)
    then = confirmed(members, service, end)
    assert {at for at, _ in then} == {tp}
    assert [(g.old, g.new) for g in members.state.growths] == [(1, 2)], "another member may read it"


def test_members_go_on_after_a_loss_of_redis_and_their_spare_still_waits(members: Group, tp: TopicPartition) -> None:
    first = pinned(members, tp, LOWER)
    done = confirmed(members, first)
    members.kafka.produce(tp.topic, keyed(4, first=5))
    spare = pinned(members, tp, LOWER)
    with ThreadPoolExecutor(1) as own_thread:
        waiting = own_thread.submit(spare.next_offset, empty(members), UNLIMITED)
        with beating(first):
            members.restart_redis(heard=first.member)
            end = confirmed(members, first, done)
            assert not waiting.done()
        assert positions(members, tp) == {LOWER: 9, UPPER: 0}
        first.leave()
        assert waiting.result() is None
    assert {s.offsets.until for s in end.slices} == {9}
    assert "recover" in members.events


def test_an_operator_moves_a_group_of_pinned_members(members: Group, tp: TopicPartition, run: Run) -> None:
    first = pinned(members, tp, LOWER)
    confirmed(members, first)
    first.leave()
    code, *_ = reset(run, members, "--all-topics", "--to-earliest", "--execute")
    assert code == 0
    again = batch(pinned(members, tp, LOWER), empty(members))
    assert {(s.hashes.lo >= LOWER.lo, s.offsets.start) for s in again.slices} == {(True, 0)}
    assert positions(members, tp) == {LOWER: 0, UPPER: 0}


def test_a_member_that_was_replaced_while_it_hung_becomes_the_spare(members: Group, tp: TopicPartition) -> None:
    first = pinned(members, tp, LOWER)
    hung = batch(first, empty(members))
    second = pinned(members, tp, LOWER)
    with members.losing(first):
        then = batch(second, empty(members))
    assert {s.offsets.start for s in then.slices} == {0}, "nothing was confirmed"
    with ThreadPoolExecutor(1) as own_thread:
        waiting = own_thread.submit(first.next_offset, hung, UNLIMITED)
        assert second.next_offset(then, UNLIMITED) is None
        assert not waiting.done()
        second.leave()
        waiting.result()
    assert {m: h for h, _, m in members.state.owners[tp]} == {first.member: LOWER}
    assert positions(members, tp) == {LOWER: 5, UPPER: 0}
