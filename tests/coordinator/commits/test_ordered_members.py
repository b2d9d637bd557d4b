"""Ordered commits where lanes share a partition: of two members, each with its own Commit API, and of one batch."""

import json
from collections.abc import Iterator
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from acknowledgements import text_of
from coordinator.commits.commit_api import CommitApi, Committed
from coordinator.commits.ordered_commits import OrderedCommits
from coordinator.errors import (
    CommitError,
    CorruptAcknowledgementError,
    FencedMemberError,
    OrderedCommitRefusedError,
)
from coordinator.progress.ownership import Owned
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.values.ranges import OffsetRange
from coordinator.values.subscription import Topic
from store_world import LOWER, TP, UPPER, World, lane
from streams import eventually

ON_EACH_SERVER = True

A_READ, B_READ = OffsetRange.parse("40-44"), OffsetRange.parse("45-49")
DEAD_MS = 300  # a lease that ends within the test
LONG_MS = 60_000


class Pair:
    """Member m-1 owns the lower hashes, m-2 the upper ones, both from offset 40 on. Each has a worker."""

    def __init__(self, world: World) -> None:
        self.world = world
        world.found(p0=40)
        world.logs_reach(100)
        for member, hashes in ("m-1", LOWER), ("m-2", UPPER):
            world.store.positions.acquire(world.join(member), {TP: (hashes,)})
        self.first, self.second = (CommitApi.of_member(world.url, world.group, member) for member in ("m-1", "m-2"))
        self.threads = ThreadPoolExecutor()

    def a(self, lease_ms: int = LONG_MS) -> OrderedCommits:
        return OrderedCommits(self.first, "worker", lease_ms)

    def b(self, lease_ms: int = LONG_MS) -> OrderedCommits:
        return OrderedCommits(self.second, "worker", lease_ms)

    def b_has_done_its_part_of_the_offsets_of_a(self) -> None:
        self.b().commit(TP, A_READ)
        assert (self.stable, self.positions) == (39, [40, 45])

    def commits_meanwhile(self, worker: OrderedCommits, offsets: OffsetRange) -> Future[Committed]:
        """A commit that waits, after it has shown so."""
        answer = self.threads.submit(worker.commit, TP, offsets)
        eventually(lambda: f"{worker.commits.lanes[TP][0].hashes} parked" in self.shown, "it waits", deadline_s=20)
        assert not answer.done()
        return answer

    def moves(self, commits: CommitApi, to: str) -> None:
        """The range of a member moves to the other one."""
        (owned,) = commits.lanes[TP]
        owner = "m-1" if to == "m-2" else "m-2"
        self.world.store.poison.abandon(self.world.caller(owner), {TP: (owned,)})
        self.world.store.positions.acquire(self.world.caller(to), {TP: (owned.hashes,)})

    @property
    def shown(self) -> list[str]:
        """The hashes and the states of the reservations in Redis."""
        with self.world.client.reading() as reading:
            found = reading.hgetall(GroupKeys(self.world.group).reserved(TP))
        return [f"{rectangle.split()[1]} {value.split()[1]}" for rectangle, value in found.items()]

    @property
    def positions(self) -> list[int]:
        """The positions of the lower and of the upper hashes."""
        found = self.world.positions()
        return [int(found.get(str(hashes)) or found["0000000000000000-7fffffffffffffff"]) for hashes in (LOWER, UPPER)]

    @property
    def stable(self) -> int:
        """The last offset done, as the draft KIP prints it."""
        return self.world.store.positions.stable(["orders"])[TP] - 1

    def close(self) -> None:
        self.threads.shutdown()
        self.first.close()
        self.second.close()


@pytest.fixture
def pair(world: World) -> Iterator[Pair]:
    made = Pair(world)
    yield made
    made.close()


def test_the_seven_steps_between_two_members(pair: Pair) -> None:
    pair.b_has_done_its_part_of_the_offsets_of_a()
    a, b = pair.a(), pair.b()
    a.reserve(TP, A_READ)  # 1
    b.reserve(TP, B_READ)  # 2
    answer_to_b = pair.commits_meanwhile(b, B_READ)  # 3 and 4
    assert (pair.stable, pair.positions) == (39, [40, 45])
    assert a.commit(TP, A_READ).stable - 1 == 44  # 5 and 6
    assert answer_to_b.result(timeout=10).refused == ()  # 7
    assert (pair.positions, pair.shown) == ([45, 50], [])
    assert a.commit(TP, B_READ).stable - 1 == 49


def test_a_commit_later_than_the_lease_of_a_committed_reservation_is_accepted(pair: Pair) -> None:
    """The positions of the hashes decide: the stable offset stays at 39, because B has not done its part yet."""
    a = pair.a(DEAD_MS)
    a.reserve(TP, A_READ)
    assert a.commit(TP, A_READ).stable - 1 == 39
    assert pair.shown == []
    b = pair.b()
    for offsets in (A_READ, B_READ):
        b.reserve(TP, offsets)
    beyond = OffsetRange.parse("60-61")
    OrderedCommits(pair.first, "as-long-as-A", DEAD_MS).reserve(TP, beyond)
    eventually(
        lambda: _ends(OrderedCommits(pair.first, "later"), beyond), "the lease of A's reservation would have ended"
    )
    assert [b.commit(TP, offsets).stable - 1 for offsets in (A_READ, B_READ)] == [44, 44]


def test_if_a_dies_b_is_refused_until_the_next_owner_of_its_hashes_has_done_them(pair: Pair) -> None:
    pair.b_has_done_its_part_of_the_offsets_of_a()
    pair.a(DEAD_MS).reserve(TP, A_READ)
    for _ in range(2):  # the first one waits for the end of the lease
        with pytest.raises(OrderedCommitRefusedError, match="stable offset 40 on: m-1/worker reserved and never"):
            pair.b().commit(TP, B_READ)
    assert (pair.stable, pair.positions, pair.world.ics()) == (39, [40, 45], {})
    with CommitApi.of_member(pair.world.url, pair.world.group, "m-1") as heir:
        heir.commit(TP, [A_READ])
    pair.b().commit(TP, B_READ)
    assert (pair.positions, pair.shown) == ([45, 50], [])


def test_offsets_of_other_hashes_that_no_worker_reserved_stop_no_commit(pair: Pair) -> None:
    assert pair.b().commit(TP, OffsetRange.parse("40-49")).stable - 1 == 39
    assert pair.positions == [40, 50]


def test_missing_offsets_of_the_own_hashes_refuse_a_commit(pair: Pair) -> None:
    with pytest.raises(OrderedCommitRefusedError, match="from the stable offset 40 on\\. Remedy"):
        pair.b().commit(TP, B_READ)
    assert (pair.positions, pair.shown) == ([40, 40], [f"{UPPER} ended"])


def test_individual_commits_complete_a_reservation(pair: Pair) -> None:
    pair.b_has_done_its_part_of_the_offsets_of_a()
    pair.a().reserve(TP, OffsetRange.parse("42-44"))
    answer_to_b = pair.commits_meanwhile(pair.b(), B_READ)
    assert pair.first.commit(TP, [OffsetRange.parse("42-44")]).stable - 1 == 39
    answer_to_b.result(timeout=10)
    assert pair.positions == [40, 50]


def test_only_offsets_below_the_own_ones_make_a_commit_wait(pair: Pair) -> None:
    pair.b_has_done_its_part_of_the_offsets_of_a()
    pair.a().reserve(TP, OffsetRange.parse("40-59"))
    answer_to_b = pair.commits_meanwhile(pair.b(), B_READ)
    pair.first.commit(TP, [A_READ])
    answer_to_b.result(timeout=10)
    assert pair.positions == [45, 50]


def test_workers_of_two_members_reserve_the_same_offsets(pair: Pair) -> None:
    for worker in pair.a(), pair.b():
        worker.reserve(TP, A_READ)
    with pytest.raises(OrderedCommitRefusedError, match=f"worker m-1/worker holds 40-44 {LOWER} of it"):
        OrderedCommits(pair.first, "other").reserve(TP, OffsetRange.parse("42-42"))
    assert pair.b().commit(TP, A_READ).stable - 1 == 39
    assert pair.a().commit(TP, A_READ).stable - 1 == 44


def test_hashes_that_moved_are_reserved_by_their_new_owner_only(pair: Pair) -> None:
    pair.a().reserve(TP, A_READ)
    pair.moves(pair.first, "m-2")
    with pytest.raises(FencedMemberError, match="owns none of these hashes"):
        pair.a().reserve(TP, A_READ)
    with CommitApi.of_member(pair.world.url, pair.world.group, "m-2") as heir:
        assert OrderedCommits(heir, "heir").commit(TP, A_READ).stable - 1 == 44
    assert pair.shown == []


def test_a_new_log_has_no_reservations(pair: Pair) -> None:
    pair.a().reserve(TP, A_READ)
    pair.world.store.positions.recreate({"orders": Topic("orders", "id-2", (0, 1))}, {TP: 0})
    assert pair.shown == []


def batch_of_two_lanes(pair: Pair, lower_until: int, upper_until: int) -> CommitApi:
    """The batch of a member that owns both halves, one lane each, from offset 40 on."""
    pair.moves(pair.second, "m-1")
    lanes = lane("aa.1", 40, lower_until, LOWER), lane("aa.3", 40, upper_until, UPPER)
    end = StreamOffset(pair.world.group, "m-1", 0, {"orders": "id-1"}, {TP: lanes})
    return CommitApi.of_offset(pair.world.url, json.dumps(end.to_json()))


def test_two_lanes_of_one_batch_do_not_refuse_each_other(pair: Pair) -> None:
    """Both lanes read from one offset on; the upper one ends first, and goes on only in the next batch."""
    with batch_of_two_lanes(pair, 60, 45) as commits:
        lower, upper = commits.lanes[TP]
        one, two = OrderedCommits(commits, "1", LONG_MS), OrderedCommits(commits, "2", LONG_MS)
        one.reserve(TP, A_READ, lanes=[lower])
        two.reserve(TP, A_READ, lanes=[upper])
        one.commit(TP, A_READ, lanes=[lower])
        assert pair.positions == [45, 40]
        one.reserve(TP, B_READ, lanes=[lower])
        two.commit(TP, A_READ, lanes=[upper])
        one.commit(TP, B_READ, lanes=[lower])
        one.commit(TP, OffsetRange.parse("50-59"), lanes=[lower])
        assert (pair.positions, pair.shown) == ([60, 45], [])
        with pytest.raises(CommitError, match="includes offset 45, and the lanes of this batch end before it"):
            two.reserve(TP, B_READ, lanes=[upper])
        with pytest.raises(CommitError, match="overlap"):
            two.reserve(TP, A_READ, lanes=[upper, upper])


def test_a_commit_ends_its_reservation_of_a_lane_that_its_batch_reads_less_far(pair: Pair) -> None:
    with batch_of_two_lanes(pair, 60, 45) as commits:
        worker, offsets = OrderedCommits(commits, "1", LONG_MS), OffsetRange.parse("40-59")
        worker.reserve(TP, offsets)
        worker.commit(TP, offsets)
        assert (pair.positions, pair.shown) == ([60, 45], [])


def test_a_commit_of_fewer_offsets_than_reserved_ends_the_reservation(pair: Pair) -> None:
    pair.b_has_done_its_part_of_the_offsets_of_a()
    a = pair.a()
    a.reserve(TP, OffsetRange.parse("40-59"))
    a.reserve(TP, OffsetRange.parse("70-79"))
    a.commit(TP, A_READ)
    assert pair.shown == [f"{LOWER} held"], "only the one that begins higher is left"
    pair.b().commit(TP, OffsetRange.parse("45-59"))
    assert pair.positions == [45, 60]


def test_a_deleted_reservation_of_a_dead_worker_without_an_owner_stops_no_commit(pair: Pair) -> None:
    pair.b_has_done_its_part_of_the_offsets_of_a()
    pair.a(DEAD_MS).reserve(TP, A_READ)
    pair.world.store.poison.abandon(pair.world.caller("m-1"), {TP: tuple(pair.first.lanes[TP])})
    with pytest.raises(OrderedCommitRefusedError, match="m-1/worker reserved and never"):
        pair.b().commit(TP, B_READ)
    pair.world.redis.delete(GroupKeys(pair.world.group).reserved(TP))
    pair.b().commit(TP, B_READ)
    assert pair.positions == [40, 50]


def rows_of(pair: Pair, *covered: str) -> list[str]:
    """The acknowledgements of rows of m-1 that cover these offsets, each with the holes before its record."""
    end = StreamOffset(pair.world.group, "m-1", 0, {"orders": "id-1"}, {TP: (lane("aa.1", 40, 120, LOWER),)})
    return [text_of(end, TP, offsets, LOWER) for offsets in covered]


def test_a_hole_between_two_reservations_of_rows_refuses_no_commit(pair: Pair) -> None:
    """A received the rows 60 and 99, B the rows 110 and 112: between them the log has no record for these hashes."""
    pair.world.logs_reach(200)
    a, b = (OrderedCommits(pair.first, name, LONG_MS) for name in "ab")
    of_a, of_b = rows_of(pair, "40-60", "61-99"), rows_of(pair, "100-110", "111-112")
    a.reserve_rows(of_a)
    b.reserve_rows(reversed(of_b))
    answer_to_b = pair.threads.submit(b.commit_rows, of_b)
    eventually(lambda: f"{LOWER} parked" in pair.shown, "B waits for A", deadline_s=20)
    assert (answer_to_b.done(), pair.positions) == (False, [40, 40])
    a.commit_rows(of_a)
    answer_to_b.result(timeout=10)
    assert (pair.positions, pair.shown) == ([113, 40], [])
    b.reserve_rows(text := rows_of(pair, "113-115")[0])
    assert len(b.commit_rows(text)) == 1
    assert pair.positions == [116, 40]


def test_a_record_of_another_worker_is_no_hole(pair: Pair) -> None:
    """Row 105 is at a worker that has reserved nothing yet."""
    pair.world.logs_reach(200)
    worker, (a, late, b) = pair.a(), rows_of(pair, "40-99", "100-105", "106-110")
    worker.reserve_rows([a, b])
    with pytest.raises(OrderedCommitRefusedError, match="missing offsets from the stable offset 40 on"):
        worker.commit_rows([b, a])
    assert (pair.positions, pair.world.ics()) == ([100, 40], {}), "the rows below are committed, and no other"
    worker.commit_rows([late, b])
    assert pair.positions == [111, 40]


def test_a_commit_by_plain_offsets_is_refused_above_a_hole_that_it_does_not_cover(pair: Pair) -> None:
    pair.a().commit_rows(rows_of(pair, "40-40"))
    with pytest.raises(OrderedCommitRefusedError, match="reserve rows by their acknowledgements") as refused:
        pair.a().commit(TP, OffsetRange.parse("47-47"))
    assert "offsets from the one after the last row before them" in str(refused.value)
    pair.a().commit(TP, OffsetRange.parse("41-47"))
    assert pair.positions == [48, 40]


def test_rows_of_another_member_or_group_are_refused(pair: Pair) -> None:
    (text,) = rows_of(pair, "40-40")
    for call in pair.b().reserve_rows, pair.b().commit_rows:
        with pytest.raises(
            CommitError, match=r"of a row of member m-1 .*, and this worker commits for member m-2 of group"
        ):
            call(text)
    with pytest.raises(CorruptAcknowledgementError):
        pair.a().commit_rows([text, "40"])
    assert (pair.positions, pair.shown) == ([40, 40], [])


def test_lanes_that_the_member_owns_no_more_are_no_part_of_a_reservation(pair: Pair) -> None:
    lanes = [*pair.first.lanes[TP], Owned(UPPER, "aa.9")]
    pair.a().reserve(TP, A_READ, lanes=lanes)
    assert pair.shown == [f"{LOWER} held"]
    assert pair.a().commit(TP, A_READ, lanes=lanes).refused == (UPPER,)
    with pytest.raises(FencedMemberError, match="at the lane epochs of the call"):
        pair.a().reserve(TP, B_READ, lanes=[Owned(LOWER, "aa.9")])


def _ends(later: OrderedCommits, offsets: OffsetRange) -> bool:
    """Whether the reservation of another worker of the member has ended."""
    try:
        later.reserve(TP, offsets)
    except OrderedCommitRefusedError:
        return False
    return True
