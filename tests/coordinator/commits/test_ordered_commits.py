"""Ordered commits: the draft KIP's seven steps and numbers (the last offset done), and A's death."""

import pytest

from coordinator.commits.ordered_commits import OrderedCommits
from coordinator.errors import CommitError, FencedMemberError, OrderedCommitRefusedError
from coordinator.values.clock import BootClock
from coordinator.values.ranges import OffsetRange
from purgatory import Purgatory
from store_world import TP
from streams import eventually

ON_EACH_SERVER = True

A_READ, B_READ = OffsetRange.parse("40-44"), OffsetRange.parse("45-49")
DEAD_MS = 300  # a lease that ends within the test
STALL_MS = 4_000  # a busy machine does not stand still for so long


def test_if_a_dies_b_is_refused_when_the_lease_of_a_ends_and_nothing_is_lost(purgatory: Purgatory) -> None:
    b = purgatory.worker("B")
    purgatory.worker("A", DEAD_MS).reserve(TP, A_READ)
    with pytest.raises(OrderedCommitRefusedError, match="stable offset 40"):
        b.commit(TP, B_READ)
    assert (purgatory.stable, purgatory.world.ics()) == (39, {})
    c = purgatory.worker("C")
    for offsets in (A_READ, B_READ):  # another worker reads everything again
        c.reserve(TP, offsets)
        c.commit(TP, offsets)
    assert purgatory.stable == 49


@pytest.mark.one_server
def test_a_worker_that_goes_on_reserving_keeps_the_others_waiting(purgatory: Purgatory) -> None:
    a = purgatory.worker("A", STALL_MS)
    a.reserve(TP, A_READ)
    answer_to_b = purgatory.commits_meanwhile(purgatory.worker("B"), B_READ)
    for _ in range(12):
        a.reserve(TP, A_READ)
        BootClock().wait(STALL_MS // 10)
    assert not answer_to_b.done()
    a.commit(TP, A_READ)
    assert answer_to_b.result(timeout=10).stable == 50


def test_a_late_worker_does_not_commit_offsets_that_another_worker_has_reserved(purgatory: Purgatory) -> None:
    a = purgatory.worker("A", DEAD_MS)
    a.reserve(TP, A_READ)
    c = purgatory.worker("C")
    with pytest.raises(OrderedCommitRefusedError, match="worker m-1/A holds 40-44"):
        c.reserve(TP, OffsetRange.parse("42-43"))
    eventually(lambda: _reserved(c), "the lease of A ends")
    with pytest.raises(OrderedCommitRefusedError, match="worker m-1/C holds 40-44"):
        a.commit(TP, A_READ)
    assert purgatory.stable == 39


def test_a_purgatory_is_fenced_as_every_commit_is(purgatory: Purgatory) -> None:
    b = purgatory.worker("B")
    purgatory.worker("A").reserve(TP, A_READ)
    answer_to_b = purgatory.commits_meanwhile(b, B_READ)
    eventually(lambda: "45-49" in purgatory.shown, "B's commit is in the purgatory")
    purgatory.world.join("m-1", "i2")
    with pytest.raises(FencedMemberError):
        answer_to_b.result(timeout=10)


def test_a_worker_has_a_name_that_can_be_shown(purgatory: Purgatory) -> None:
    with pytest.raises(CommitError, match="not the name of a worker"):
        purgatory.worker("a b")


def _reserved(worker: OrderedCommits) -> bool:
    try:
        worker.reserve(TP, A_READ)
    except OrderedCommitRefusedError:
        return False
    return True
