"""A start that the sink has completed becomes progress in Redis."""

from dataclasses import replace
from typing import Any

import pytest

from coordinator.errors import SinkSkippedBatchError
from coordinator.member.batch import Batch
from coordinator.member.committing import commit, learn, witness
from coordinator.member.decision import Decision
from coordinator.member.evidence import Evidence
from coordinator.member.kinds import Request
from coordinator.member.requests import Claim, Commit, Event, Learn, LogBatch, ReadEnds, ReadSeal, ShowBatch
from coordinator.member.state import Commits, CommitUnderWay, Failing, Losses, Mirrored, Shown, State, Turn
from coordinator.plan.cost.batch_cost import BatchCost, Ended, Load
from coordinator.plan.cost.telemetry import SliceCost
from coordinator.progress.ends import Ends
from coordinator.progress.failing import FailingRecord, Failures
from coordinator.progress.ownership import Fact, Facts, Owned, Ownership, completed
from coordinator.progress.segments import Progress, Segment
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.redis.lane_lines import BatchLine
from coordinator.redis.replies import Acquired, Moved, Sealed
from coordinator.values.hash_map import HashMap
from coordinator.values.ranges import WHOLE, OffsetRange
from states import (
    EPOCH,
    FIRST,
    LEFT,
    MEMBER,
    NEXT_EPOCH,
    NOW,
    RIGHT,
    TP,
    asks,
    call,
    decided,
    end_of,
    fails,
    held,
    joined,
    owned,
    owning,
)

START = end_of(10, 20)
AUTHORIZED = Batch(START, granted=owned(), readable=owned(), began_ms=1)


def learned(state: State) -> State:
    return replace(state, turn=Turn(learned=True))


def test_start_of_another_process__the_cost_model_learns_nothing() -> None:
    assert decided(learn, joined(), call(START), (Learn(START), None)) == Decision(learned(joined()))


def test_in_the_sink__the_cost_model_learns_and_the_batch_is_shown() -> None:
    ended = Ended(BatchCost((), 5.0), 1_500.0)
    state = joined(batch=AUTHORIZED, evidence=Evidence(START, None, (START,)))
    decision = decided(learn, state, call(START), (Learn(START), ended))
    then = learned(replace(state, batch=replace(AUTHORIZED, ended=True), shown=Shown(ended=ended)))
    line = BatchLine(MEMBER, 0, 0, 1.5, 0, "-", reading=0)
    assert decision == Decision(then, (ShowBatch(line), LogBatch(line)))


def read_for(read_ms: float) -> Ended:
    """A batch of ten seconds, in which its one task read so long."""
    cost = SliceCost(TP, WHOLE, OffsetRange(10, 20), 10, 100, read_ms, 0.0, (), finished=True)
    return Ended(BatchCost((Load((TP, WHOLE), 0, 10, 10.0, cost),), 9_000.0), 10_000.0)


def test_reading_took_most_of_a_long_batch__log_that_once_with_figures() -> None:
    state = joined(batch=AUTHORIZED, evidence=Evidence(START, None, (START,)))
    decision = decided(learn, state, call(START), (Learn(START), read_for(9_100.0)))
    show, batch, log = decision.effects
    assert str(log.arguments["text"]).startswith(
        f"group g, member {MEMBER}: a task read from Kafka for 91 % of the last batch (10.0 s, 10 records). So reading"
    )
    again = replace(decision.state, turn=Turn())
    assert decided(learn, again, call(START), (Learn(START), read_for(9_100.0))).effects == (show, batch)


def test_tasks_waited_for_a_broker__reading_is_not_the_bottleneck() -> None:
    """The look before the batch may have found all leaders."""
    state = joined(batch=AUTHORIZED, evidence=Evidence(START, None, (START,)))
    waited = replace(read_for(9_100.0), failures=Failures(kafka_away=True))
    decision = decided(learn, state, call(START), (Learn(START), waited))
    assert [e.kind for e in decision.effects] == [ShowBatch, LogBatch]
    assert not decision.state.shown.limit_logged


def test_processing_took_a_part_of_a_long_batch__log_nothing() -> None:
    state = joined(batch=AUTHORIZED, evidence=Evidence(START, None, (START,)))
    decision = decided(learn, state, call(START), (Learn(START), read_for(7_000.0)))
    assert [e.kind for e in decision.effects] == [ShowBatch, LogBatch]
    assert not decision.state.shown.limit_logged


def test_its_batch_deferred_keys__their_records_are_read_before_the_next_plan() -> None:
    record = FailingRecord(TP, 5, 15, 1, 0)
    ended = Ended(BatchCost((), 0.0), 1.0, Failures((record,), 2, 3))
    decision = decided(learn, joined(failing=Failing((), NOW)), call(START), (Learn(START), ended))
    assert decision.state.failing.looked_at_ms is None
    assert (decision.state.shown.skipped, decision.state.shown.dead_lettered) == (2, 3)


def test_learned_in_this_call__nothing_is_learned_again() -> None:
    assert decided(learn, learned(joined()), call(START)) == Decision(learned(joined()))


def under_way(start: StreamOffset = START, witnessed: Ownership | None = None, **changes: Any) -> State:
    """The state in which a start is committed."""
    request = Commit(start, completed(start), start.digest)
    commits = Commits(CommitUnderWay(start, request))
    evidence = Evidence(start, witnessed, (start,))
    return joined(**{"commits": commits, "evidence": evidence, **changes})


def done(start: StreamOffset = START, **changes: Any) -> State:
    """The state in which all of a start is committed."""
    known: dict[str, Any] = {
        "evidence": Evidence(start),
        "commits": Commits(None, start, start),
        "turn": Turn(committed=True),
    }
    return joined(**{**known, **changes})


def test_start_is_sink_complete__commit_the_authorized_batch() -> None:
    batch = Batch(START, granted=owned(), readable=owned(LEFT))
    mine = end_of(10, 20, LEFT)
    decision = decided(witness, joined(batch=batch), call(START))
    request = Commit(mine, {TP: (Fact(LEFT, 20, EPOCH),)}, START.digest)
    state = joined(
        batch=batch,
        losses=Losses(within=mine),
        evidence=Evidence(START, owned(LEFT), (START,)),
        commits=Commits(CommitUnderWay(START, request, all_of_it=False)),
    )
    assert decision == Decision(state)


def test_start_that_another_life_read__commit_all_of_it_and_witness_nothing() -> None:
    batch = Batch(end_of(20, 30), granted=owned(), readable=owned())
    decision = decided(witness, joined(batch=batch), call(START))
    assert decision == Decision(replace(under_way(), batch=batch, losses=Losses(within=START)))


EARLY = end_of(10, 20, early=1)
READ = Batch(EARLY, granted=owned(), readable=owned())
REPLAYED = replace(READ, replayed=True)
TO_15: Ends = {TP: HashMap.of(WHOLE, 15)}
SEAL = ReadSeal(MEMBER, EARLY.digest)


@pytest.mark.parametrize(
    ("batch", "answers", "done"),
    [
        pytest.param(READ, [(ReadEnds(EARLY), TO_15)], 15, id="its tasks reported the ends to this process"),
        pytest.param(READ, [(ReadEnds(EARLY), {})], 20, id="its tasks read all of it"),
        pytest.param(
            replace(REPLAYED, ends=TO_15),
            [(ReadEnds(EARLY), {})],
            15,
            id="an earlier life sealed it, this one read it again",
        ),
        pytest.param(
            replace(REPLAYED, ends=TO_15),
            [(ReadEnds(EARLY), {TP: HashMap.of(WHOLE, 12)})],
            12,
            id="... and deferred a key (rule: replay-may-defer)",
        ),
        pytest.param(replace(REPLAYED, unknown=True), [], 10, id="its seal may be lost"),
        pytest.param(None, [(SEAL, Sealed(TO_15))], 15, id="an earlier life read and sealed it"),
        pytest.param(None, [(SEAL, Sealed(None))], 10, id="an earlier life read it, its seal is lost"),
        pytest.param(None, [(SEAL, Sealed(unread=True))], 20, id="no life read it: Redis refuses it"),
    ],
)
def test_start_that_ended_early__commit_its_true_ends(
    batch: Batch | None, answers: list[tuple[Request[Any], Any]], done: int
) -> None:
    """Rules: seal-before-sink, unknown-is-beginning, unread-batch."""
    decision = decided(witness, joined(batch=batch), call(EARLY), *answers)
    under_way = decision.state.commits.under_way
    assert under_way is not None
    assert under_way.request.arguments["facts"] == {TP: (Fact(WHOLE, done, EPOCH),)}
    proven = done if batch else 10  # another life read it: this one may assert its beginnings only
    assert decision.state.evidence.facts == {TP: (Fact(WHOLE, proven),)}


def test_the_initial_offset__there_is_nothing_to_commit() -> None:
    state = done(FIRST, commits=Commits(None, None, FIRST), losses=Losses(within=FIRST))
    assert decided(witness, joined(), call(FIRST)) == Decision(state)


def test_start_that_was_committed_whole__commit_nothing() -> None:
    state = joined(commits=Commits(None, START, START), evidence=Evidence(START))
    assert decided(witness, state, call(START)) == Decision(done())


def test_start_that_ended_early_comes_again__its_true_ends_stay_known() -> None:
    """Spark asks again while there is nothing to read. After a loss of state the member asserts its evidence."""
    first = decided(witness, joined(batch=READ), call(EARLY), (ReadEnds(EARLY), TO_15)).state
    again = replace(first, commits=Commits(None, EARLY, EARLY), turn=Turn())
    assert decided(witness, again, call(EARLY)).state.evidence.facts == {TP: (Fact(WHOLE, 15),)}
    in_part = replace(again, commits=Commits(None, EARLY))
    assert decided(witness, in_part, call(EARLY)).state.evidence.facts == {TP: (Fact(WHOLE, 15),)}


def test_start_that_was_committed_in_part__the_rest_must_vanish_from_the_next_offset() -> None:
    batch = Batch(START, granted=owned(LEFT), readable=owned(LEFT))
    state = joined(commits=Commits(None, START), batch=batch)
    decision = decided(witness, state, call(START))
    then = replace(
        state,
        losses=Losses(within=end_of(10, 20, LEFT)),
        turn=Turn(committed=True, skipped=True),
    )
    assert decision == Decision(then)


def test_committed_in_this_call__nothing_is_witnessed_again() -> None:
    assert decided(witness, done(), call(START)) == Decision(done())


def test_no_commit_under_way__go_on() -> None:
    assert decided(commit, done(), call(START)) == Decision(done())


def test_under_way__commit() -> None:
    state = under_way()
    assert decided(commit, state, call(START)) == asks(state, Commit(START, completed(START), START.digest))


REQUEST = Commit(START, completed(START), START.digest)
MOVED: dict[str, Any] = {"losses": Losses(completed=START), "mirrored": Mirrored(behind=True)}


def test_committed__positions_have_moved_so_acquire_again() -> None:
    decision = decided(commit, under_way(owning=owning()), call(START), (REQUEST, Moved({}, exactly=False)))
    assert decision == Decision(done(owning=owning(stale=True), **MOVED))


def test_committed_exactly_and_all_that_is_owned__positions_are_known() -> None:
    state = under_way(owning=owning(held(10), stale=True))
    decision = decided(commit, state, call(START), (REQUEST, Moved({}, exactly=True)))
    then = done(owning=owning(held(20)), turn=Turn(committed=True, fresh=True), **MOVED)
    assert decision == Decision(then)


@pytest.mark.parametrize(
    "owns_now",
    [
        pytest.param(held(10, epoch=NEXT_EPOCH), id="at another lane epoch"),
        pytest.param(held(10, LEFT), id="less"),
        pytest.param(replace(held(10), reset=1), id="after a reset"),
        pytest.param(replace(held(10), topic_ids={"orders": "id-2"}), id="of another topic id"),
        pytest.param(replace(held(10), topic_ids={"orders": "id-1", "other": "id-9"}), id="another topic too"),
    ],
)
def test_committed_exactly_but_not_all_that_is_owned__acquire_again(owns_now: Acquired) -> None:
    before = owning(owns_now)
    decision = decided(commit, under_way(owning=before), call(START), (REQUEST, Moved({}, exactly=True)))
    assert decision == Decision(done(owning=replace(before, stale=True), **MOVED))


def test_unread__the_query_ends_and_its_ranges_are_free() -> None:
    state = under_way()
    decision = decided(commit, state, call(START), (REQUEST, Moved({}, exactly=False, unread=True)))
    event = Event("skipped", "the sink completed a batch that it did not read; nothing of it was committed")
    then = joined(evidence=Evidence(START), commits=Commits())
    assert decision == Decision(then, (event,), fails(SinkSkippedBatchError, "completed a batch without reading it"))


REFUSED: Facts = {TP: (Fact(LEFT, 20, EPOCH),)}
LEFT_LANE = {TP: (Lane(RIGHT, NEXT_EPOCH, 10, (OffsetRange(10, 20),)),)}


def test_refused_lane_that_was_read__claim() -> None:
    state = under_way(witnessed=owned())
    decision = decided(
        commit,
        state,
        call(START),
        (REQUEST, Moved(REFUSED, exactly=False)),
    )
    then = done(
        evidence=Evidence(START, owned()),
        owning=replace(state.owning, stale=True),
        losses=Losses(completed=replace(START, lanes={TP: ()})),
        mirrored=Mirrored(behind=True),
    )
    assert decision == Decision(then, (Claim(START, {TP: (Fact(LEFT, 20),)}),))


def test_refused_lane_that_another_life_read__claim_nothing() -> None:
    decision = decided(commit, under_way(), call(START), (REQUEST, Moved(REFUSED, exactly=False)))
    assert decision.effects == ()
    assert decision.state.commits == Commits(None, START, START)


def test_refused_lane_of_two__the_other_stays_known_as_completed() -> None:
    start = replace(START, lanes={TP: (Lane(LEFT, EPOCH, 10, (OffsetRange(10, 20),)), *LEFT_LANE[TP])})
    request = Commit(start, completed(start), start.digest)
    decision = decided(commit, under_way(start), call(start), (request, Moved(REFUSED, exactly=False)))
    assert decision.state.losses.completed == replace(start, lanes=LEFT_LANE)


def test_part_of_the_start_is_mine__the_rest_must_vanish_from_the_next_offset() -> None:
    mine = end_of(10, 20, LEFT)
    request = Commit(mine, completed(mine), START.digest)
    state = under_way(commits=Commits(CommitUnderWay(START, request, all_of_it=False)))
    decision = decided(commit, state, call(START), (request, Moved({}, exactly=False)))
    assert decision.state.commits == Commits(None, START)
    assert decision.state.turn == Turn(committed=True, skipped=True)


def test_other_ranges_are_owned_beside_the_batch__their_positions_stay() -> None:
    both = {TP: (Owned(LEFT, EPOCH), Owned(RIGHT, NEXT_EPOCH))}
    progress = {TP: Progress((Segment(LEFT, 10), Segment(RIGHT, 10)))}
    acquired = replace(held(10), ownership=both, progress=progress)
    state = under_way(end_of(10, 20, LEFT), owning=owning(acquired))
    request = Commit(end_of(10, 20, LEFT), completed(end_of(10, 20, LEFT)), end_of(10, 20, LEFT).digest)
    decision = decided(commit, state, call(end_of(10, 20, LEFT)), (request, Moved({}, exactly=True)))
    assert decision.state.owning == owning(acquired, stale=True)
