"""An acknowledger collects single offsets and commits them as ranges, on a real Redis."""

from threading import Thread
from typing import Any

import pytest

from commit_apis import api, ranges, state
from coordinator.commits.acknowledger import Acknowledger
from coordinator.commits.commit_api import RANGES_MAX, CommitApi, Committed
from coordinator.errors import (
    CommitBeyondReadError,
    IndividualCommitTooOldError,
    MaxIndividualCommitReachedError,
)
from coordinator.values.ranges import WHOLE, OffsetRange
from store_world import TP, World

ON_EACH_SERVER = True


def test_an_acknowledger_commits_once_more_ranges_are_collected_than_it_may_collect(world: World) -> None:
    collected = Acknowledger(api(world, 43), max_ranges=2)
    assert collected.done(TP, OffsetRange(45, 46)) is None
    assert collected.done(TP, OffsetRange(46, 47)) is None  # goes on where the last one ended: still one range
    assert collected.done(TP, OffsetRange(50, 51)) is None
    assert world.ics() == {}
    assert collected.done(TP, OffsetRange(60, 61)) == Committed(43, 3, 0, ())
    collected.done(TP, OffsetRange(43, 45))
    assert collected.flush() == {TP: Committed(47, 2, 0, ())}
    assert collected.flush() == {}


def test_an_acknowledger_keeps_refused_offsets_unless_they_are_committed_already(world: World) -> None:
    commits = api(world, 43, "45-45", max_individual_commits=1)
    collected = Acknowledger(commits)
    collected.done(TP, OffsetRange(47, 48))
    with pytest.raises(MaxIndividualCommitReachedError):
        collected.flush()
    commits.commit(TP, ranges("43-44"))
    assert collected.flush() == {TP: Committed(46, 1, 0, ())}
    collected.done(TP, OffsetRange(40, 41))
    with pytest.raises(IndividualCommitTooOldError):
        collected.flush()
    assert collected.flush() == {}


def test_an_acknowledger_commits_read_offsets_and_keeps_those_beyond_the_log_end(world: World) -> None:
    commits = api(world)
    collected = Acknowledger(commits)
    world.logs_reach(50)
    for start, until in ((43, 45), (47, 52), (60, 61)):
        collected.done(TP, OffsetRange(start, until))
    for _ in range(2):
        with pytest.raises(CommitBeyondReadError, match="includes offset 50"):
            collected.flush()
        assert state(world) == ({str(WHOLE): "45"}, {str(WHOLE): "47-49"})
    world.logs_reach(61)
    assert collected.flush() == {TP: Committed(45, 2, 0, ())}
    assert world.ics() == {str(WHOLE): "47-51 60-60"}


def test_at_the_cap_an_acknowledger_commits_the_lowest_offsets_that_fit(world: World) -> None:
    collected = Acknowledger(api(world, 43, max_individual_commits=2))
    for offset in (51, 49, 47, 45):
        assert collected.done(TP, OffsetRange(offset, offset + 1)) is None
    with pytest.raises(MaxIndividualCommitReachedError):
        collected.flush()
    assert state(world) == ({str(WHOLE): "43"}, {str(WHOLE): "45-45 47-47"})
    collected.done(TP, OffsetRange(43, 45))  # what is missing behind them comes through, and makes room
    with pytest.raises(MaxIndividualCommitReachedError):
        collected.flush()
    assert state(world) == ({str(WHOLE): "46"}, {str(WHOLE): "47-47 49-49"})
    collected.done(TP, OffsetRange(46, 51))
    assert collected.flush() == {TP: Committed(52, 0, 0, ())}


def test_an_acknowledger_loses_nothing_that_is_done_while_another_thread_commits(world: World) -> None:
    class Interrupted(CommitApi):
        """While it commits another record is done."""

        def commit(self, *args: Any, **kwargs: Any) -> Committed:
            if not other.ident:
                other.start()
                other.join(0.2)  # it waits for the lock, or has come in between
            return super().commit(*args, **kwargs)

    commits = api(world, 43)
    commits.__class__ = Interrupted
    collected = Acknowledger(commits)
    other = Thread(target=collected.done, args=(TP, OffsetRange(47, 48)))
    collected.done(TP, OffsetRange(45, 46))
    collected.flush()
    other.join()
    collected.flush()
    assert world.ics() == {str(WHOLE): "45-45 47-47"}


@pytest.mark.one_server
def test_an_acknowledger_that_has_collected_more_than_one_call_takes_cuts_it(world: World) -> None:
    collected = Acknowledger(api(world, 0, max_individual_commits=3), RANGES_MAX)
    *most, last = (OffsetRange(2 * i + 1, 2 * i + 2) for i in range(RANGES_MAX + 1))
    assert not any(collected.done(TP, one) for one in most)
    with pytest.raises(MaxIndividualCommitReachedError, match="the limit of 3 individual"):
        collected.done(TP, last)
    assert world.ics() == {str(WHOLE): "1-1 3-3 5-5"}
    collected.done(TP, OffsetRange(0, last.start))
    assert collected.flush() == {TP: Committed(last.until, 0, 0, ())}
