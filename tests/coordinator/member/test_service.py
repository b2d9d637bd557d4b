"""A member's service: the policies at its start, its heartbeat and its leave, on a world with written answers."""

from dataclasses import replace
from typing import Any, cast

import pytest

from coordinator.assignment.policies import Policy
from coordinator.assignment.settings import GroupSettings
from coordinator.errors import (
    FencedMemberError,
    IndividualCommitNotAllowedError,
    RedisUnavailableError,
    TopicRangeFetchNotAllowedError,
)
from coordinator.member.batch import Batch
from coordinator.member.decision import Decision, Return
from coordinator.member.evidence import Evidence
from coordinator.member.heartbeat import Pulse
from coordinator.member.requests import (
    Claim,
    Commit,
    Heartbeat,
    Join,
    LastCommit,
    Leave,
    LogLine,
    Mirror,
    Notify,
    ReadClusterPolicies,
    ReadPolicy,
    ReportWorking,
    Seal,
)
from coordinator.member.service import CHECK_POLICIES, NEXT_OFFSET, TASKS, Service
from coordinator.member.state import NOT_ACQUIRED, Commits, CommitUnderWay, Mirrored, State
from coordinator.plan.planning import Cutting
from coordinator.progress.failing import FailingRecord, Failures
from coordinator.progress.slices import Slice
from coordinator.redis.replies import Joining, JoinReply, SeenState
from coordinator.values.hash_map import HashMap
from coordinator.values.offset_spec import Latest
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import Topics
from coordinator.values.verdicts import Fenced, Lost, Rejoin
from log_lines import own_lines
from states import FRESH, LEFT, LIFE, NONCE, NOW, RIGHT, TP, call, decided, end_of, fails, joined, owned, owns
from written_worlds import Hands, Script, answered, turns

POLICIES = CHECK_POLICIES[-1]


def test_nothing_is_demanded__policies_are_not_read() -> None:
    assert decided(POLICIES, joined(), call()) == Decision(joined(), (), Return(None))


@pytest.mark.parametrize(
    ("policy", "outcome"),
    [
        pytest.param(Policy(), Return(None), id="allowed"),
        pytest.param(Policy(refused_topics=frozenset({"other"})), Return(None), id="refused for another topic"),
        pytest.param(
            Policy(accept_individual_commit=False),
            fails(IndividualCommitNotAllowedError, "accept.individual.commit=false"),
            id="code 88",
        ),
        pytest.param(
            Policy(refused_topics=frozenset({"orders"})),
            fails(TopicRangeFetchNotAllowedError, "accept.range.fetch=false"),
            id="code 89",
        ),
    ],
)
def test_parts_of_partitions_are_demanded__as_policies_allow(policy: Policy, outcome: Any) -> None:
    decision = decided(
        POLICIES, joined(), call(demanding=True), (ReadPolicy(), policy), (ReadClusterPolicies(), ("", Policy()))
    )
    assert decision == Decision(joined(), (), outcome)


ORDER = {
    NEXT_OFFSET: "accept strike_before_join witness join commit follow see_logs settle_losses limit pace_batch "
    "look_closer end_run plan_batch",
    TASKS: "accept strike_before_join arrive join authorize leave_out_struck return_tasks",
}


@pytest.mark.parametrize(("steps", "names"), ORDER.items(), ids=["next_offset", "tasks"])
def test_steps__come_in_this_order(steps: Any, names: str) -> None:
    """Positions move before ranges are released; log ends are read after ranges were acquired."""
    wanted = names.split()
    assert [name for step in steps if (name := step.__name__) in wanted] == wanted


def service(state: State, world: Script) -> Service:
    """A service in this state, which calls this world; Redis knows that it works on nothing."""
    clock = Hands()
    parts = GroupSettings("g"), Topics(("orders",)), Latest(), Cutting(1)
    made = Service(*parts, store=cast(Any, None), log=cast(Any, None), clock=clock, me=Joining({}))
    made._turns = turns(world, state, clock)
    made._pulse = Pulse(("", NONCE))
    return made


RENEWED = answered(None)


SILENT = RedisUnavailableError("redis:6379 does not answer", "start it")


REVOKED = Notify({TP: (WHOLE,)}, {}, {})


MIRROR = Mirror((TP,), ("orders",))


def test_heartbeat__renew_the_lease() -> None:
    world = Script(RENEWED)
    service(joined(), world).heartbeat()
    assert world.requests == [Heartbeat()]


def test_heartbeat_before_it_has_joined__ask_nothing() -> None:
    world = Script()
    service(joined(life=FRESH), world).heartbeat()
    assert world.requests == []


@pytest.mark.parametrize("error", [pytest.param(Lost("why"), id="a verdict"), pytest.param(SILENT, id="an outage")])
def test_heartbeat_is_refused__it_is_left_to_the_next_call_of_spark(error: Exception) -> None:
    world = Script(error, True)
    member = service(joined(), world)
    member.heartbeat()
    assert member.state == joined()
    assert world.requests[0] == Heartbeat()


def test_heartbeat_is_refused__the_log_line_names_the_reason(caplog: pytest.LogCaptureFixture) -> None:
    service(joined(), Script(Lost("another Redis server answers"))).heartbeat()
    assert own_lines(caplog) == ["heartbeat of m-1: another Redis server answers"]


AGAIN = JoinReply(SeenState("n-2", 3), NOW + 45_000, {})


def test_heartbeat_after_a_recovery__assert_positions_and_join_again() -> None:
    """The next call of Spark may come after the end of the recovery."""
    world = Script(Rejoin(), None, AGAIN, RENEWED, RENEWED)
    member = service(joined(evidence=Evidence(END, None, (END,))), world)
    member.heartbeat()
    assert [r.kind for r in world.requests] == [Heartbeat, Claim, Join, ReportWorking]
    assert world.requests[2].arguments["joined_before"] == NONCE
    life = member.state.life
    assert (life.nonce, life.nonce_before, life.seq, life.asserted_at) == ("n-2", "n-2", 3, None)
    member.heartbeat()
    assert world.asked[-1][1].nonce == "n-2"


def test_heartbeat_after_a_recovery_in_a_call_of_spark__that_call_joins() -> None:
    world = Script(Rejoin(), True)
    member = service(joined(), world)
    with member._turns.between_calls():  # or a call of Spark
        member.heartbeat()
    assert (world.requests[0], member.state) == (Heartbeat(), joined())


def test_a_call_of_spark__waits_until_the_heartbeat_thread_has_joined() -> None:
    member = service(joined(), Script())
    with member._turns.between_calls():
        waits: list[int] = []

        def wait(ms: int) -> None:
            waits.append(ms)
            raise TimeoutError

        member._turns._clock.wait = wait  # type: ignore[method-assign]
        with pytest.raises(TimeoutError):
            member.check_store(lambda: None)
    assert waits == [10]


def test_heartbeat_is_fenced__no_later_one_joins_again_and_the_next_call_ends_the_query() -> None:
    world = Script(Fenced())
    member = service(joined(), world)
    member._pulse = Pulse(("", NONCE))
    member.heartbeat()
    member.heartbeat()
    assert world.requests == [Heartbeat()]
    assert isinstance(member.state.life.verdict, Fenced)


@pytest.mark.parametrize("ended", [0, 1, 2])
def test_heartbeat_in_a_batch__a_task_may_read_until_all_have_ended(ended: int) -> None:
    """Rule: batch-clock."""
    world = Script(RENEWED, RENEWED)
    batch = Batch(END, granted=owned(), readable=owned(), began_ms=NOW)
    member = service(joined(batch=batch, evidence=Evidence(END, None, (END,))), world)
    member._inbox.begin(END, EARLY_TASKS)
    for task in range(ended):
        assert member.end_task(END.digest, task, {}) == {}
    member.heartbeat()
    assert world.requests[0] == Heartbeat(reading=ended < 2)


def test_outage__one_line_for_several_heartbeats() -> None:
    world = Script(SILENT, True, SILENT)
    member = service(joined(), world)
    member.heartbeat()
    member.heartbeat()
    assert [request.kind for request in world.requests] == [Heartbeat, LogLine, Heartbeat]


def test_first_heartbeat_at_a_nonce__report_that_nothing_is_under_way() -> None:
    world = Script(RENEWED, RENEWED)
    member = service(joined(), world)
    member._pulse = Pulse()
    member.heartbeat()
    assert world.requests == [Heartbeat(), ReportWorking("")]


def test_a_report_that_got_no_answer__report_again_at_the_next_heartbeat() -> None:
    """Redis may have received it: an older report must not stay there."""
    world = Script(RENEWED, SILENT, True, RENEWED, RENEWED)
    member = service(joined(), world)
    member._pulse = Pulse((f"orders 0 {WHOLE} 10-20;", NONCE))
    member.heartbeat()
    member._pulse = replace(member._pulse, away=None)
    member.heartbeat()
    assert [r for r in world.requests if r.kind is ReportWorking] == [ReportWorking(""), ReportWorking("")]


def test_slices_that_were_reported__are_withdrawn_once() -> None:
    """Redis holds slices of this member, none of which is under way any more."""
    world = Script(RENEWED, RENEWED, RENEWED)
    member = service(joined(), world)
    member._pulse = replace(member._pulse, working=("orders 0 ...", NONCE))
    member.heartbeat()
    member.heartbeat()
    assert world.requests == [Heartbeat(), ReportWorking(""), Heartbeat()]


END = end_of(10, 20)
BEGUN = Batch(end_of(10, 20), granted=owned(), readable=owned(), began_ms=NOW - 300_001)


@pytest.mark.parametrize(
    ("batch", "singly"),
    [
        pytest.param(Batch(end_of(10, 20), {(TP, WHOLE): 10}), True, id="about one record on trial"),
        pytest.param(Batch(end_of(10, 20), {(TP, WHOLE): 9}), False, id="many records on trial"),
        pytest.param(Batch(end_of(10, 20)), False, id="nothing is on trial"),
        pytest.param(None, False, id="no batch"),
    ],
)
def test_a_task_takes_records_one_by_one__of_a_lane_on_trial_with_about_one_record(
    batch: Batch | None, singly: bool
) -> None:
    assert service(joined(batch=batch), Script()).singly([Slice(TP, WHOLE, OffsetRange(10, 20))]) is singly


EARLY = end_of(10, 20, early=1)
TO_15 = {TP: HashMap.of(WHOLE, 15)}
EARLY_TASKS = tuple((Slice(TP, hashes, OffsetRange(10, 20)),) for hashes in (LEFT, RIGHT))
SEALED = Seal(EARLY.digest, {TP: HashMap.of(LEFT, 15)})


def reading(world: Script) -> Service:
    """A service whose batch of two tasks is under way; the second task has read all of its slice."""
    member = service(joined(), world)
    member._inbox.begin(EARLY, EARLY_TASKS)
    assert member.end_task(EARLY.digest, 1, {}) == {}
    assert world.requests == []
    return member


def test_the_last_task_ends__it_waits_until_the_batch_is_sealed() -> None:
    world = Script(SILENT, SILENT, answered(True))
    assert reading(world).end_task(EARLY.digest, 0, TO_15) == TO_15
    assert world.requests == [SEALED] * 3


def test_redis_is_away_for_too_long__the_last_task_fails() -> None:
    world = Script(*[SILENT] * 400)
    with pytest.raises(RedisUnavailableError):
        reading(world).end_task(EARLY.digest, 0, TO_15)


@pytest.mark.parametrize(
    "answer", [pytest.param(Fenced(), id="fenced"), pytest.param(answered(False), id="another batch")]
)
def test_another_life_of_the_member_has_joined__the_last_task_fails(answer: Any) -> None:
    with pytest.raises(FencedMemberError):
        reading(Script(answer)).end_task(EARLY.digest, 0, TO_15)


def test_others_may_not_report_theirs__each_task_waits_until_its_early_ends_are_sealed() -> None:
    """The sink may complete the batch before the tasks that do not reach this process would report."""
    world = Script(answered(True), answered(True))
    member = service(joined(batch=Batch(EARLY, granted=owned(), as_planned=True)), world)
    member._inbox.begin(EARLY, EARLY_TASKS)
    member.end_task(EARLY.digest, 0, TO_15)
    assert world.requests == [SEALED]
    member.end_task(EARLY.digest, 1, {})
    assert world.requests == [SEALED], "its planned ends are sealed"


RECORD = FailingRecord(TP, 5, 15, 1, 0)


def test_the_last_task_ends__the_failing_records_of_all_tasks_are_stored_with_the_seal() -> None:
    world = Script(answered(True))
    reading(world).end_task(EARLY.digest, 0, TO_15, Failures((RECORD,)))
    assert world.requests == [Seal(EARLY.digest, {TP: HashMap.of(LEFT, 15)}, (RECORD,))]


def test_a_replay_of_a_sealed_batch_defers_a_key__its_task_waits_until_the_lower_end_is_sealed() -> None:
    """Rule: replay-may-defer. A task that does not reach this process reads to the sealed ends."""
    world = Script(answered(True))
    member = service(joined(batch=Batch(EARLY, granted=owned(), replayed=True, ends={})), world)
    member._inbox.begin(EARLY, EARLY_TASKS)
    member.end_task(EARLY.digest, 0, TO_15, Failures((RECORD,)))
    assert world.requests == [Seal(EARLY.digest, {TP: HashMap.of(LEFT, 15)}, (RECORD,))]
    member.end_task(EARLY.digest, 1, {})
    assert len(world.requests) == 1


@pytest.mark.parametrize("verdict", [Rejoin(), Lost("restarted")])
def test_redis_lost_the_group__the_last_task_ends_and_only_this_process_knows_the_ends(verdict: Exception) -> None:
    """Its lane epochs are void: no later life commits the batch."""
    world = Script(verdict)
    assert reading(world).end_task(EARLY.digest, 0, TO_15) == TO_15
    assert world.requests == [SEALED]


def test_leave__free_all_ranges_and_mirror() -> None:
    world = Script(RENEWED, True, True, True)
    member = service(owns(), world)
    member.leave()
    assert world.requests == [Heartbeat(), Leave({TP: ()}), REVOKED, MIRROR]
    assert (member.state.life, member.state.owning.acquired) == (replace(LIFE, nonce="", seq=9), NOT_ACQUIRED)


def test_leave_before_it_has_looked_at_logs__free_the_ranges_of_its_earlier_life() -> None:
    """A sink that skipped the last batch of the earlier life ends this one in its first call."""
    world = Script(RENEWED, True, True)
    service(joined(log=replace(joined().log, bounds={})), world).leave()
    assert world.requests == [Heartbeat(), Leave({TP: ()}), MIRROR]


def test_leave_with_an_unconfirmed_slice__keep_its_range() -> None:
    world = Script(RENEWED, True, True, True)
    service(owns(evidence=Evidence(unconfirmed=(end_of(10, 20),))), world).leave()
    assert world.requests == [Heartbeat(), Leave({TP: (WHOLE,)}), Notify({}, {TP: (WHOLE,)}, {}), MIRROR]


START = end_of(10, 20)


COMMIT = Commit(START, {}, "")


COMMITTING = owns(commits=Commits(CommitUnderWay(START, COMMIT)), evidence=Evidence(START, None, (START,)))


def test_leave_in_a_commit__commit_once_more_and_free_its_range() -> None:
    world = Script(RENEWED, True, True, True, True)
    service(COMMITTING, world).leave()
    assert world.requests == [Heartbeat(), LastCommit(**COMMIT.arguments), Leave({TP: ()}), REVOKED, MIRROR]
    assert world.numbers[:2] == ["", "1"]


def test_leave_in_a_commit_but_it_must_join_again__commit_nothing() -> None:
    world = Script(True)
    service(replace(COMMITTING, life=LIFE.rejoining()), world).leave()
    assert world.requests == [Notify({}, {TP: (WHOLE,)}, {})]


def test_leave_in_a_commit_that_fails_again__keep_its_range() -> None:
    world = Script(RENEWED, SILENT, True, True, True)
    service(COMMITTING, world).leave()
    assert [r for r in world.requests if r.kind is Leave] == [Leave({TP: (WHOLE,)})]


def test_leave_fails__the_listener_has_lost_its_ranges_and_the_lease_ends_by_itself() -> None:
    world = Script(RENEWED, Rejoin(), True)
    member = service(owns(), world)
    member.leave()
    assert world.requests == [Heartbeat(), Leave({TP: ()}), Notify({}, {TP: (WHOLE,)}, {})]
    assert member.state.life == replace(LIFE, seq=9)


def test_leave_before_it_has_joined__ask_nothing() -> None:
    world = Script()
    service(joined(life=FRESH), world).leave()
    assert world.requests == []


def test_leave_beside_plain_consumers__do_not_mirror() -> None:
    world = Script(RENEWED, True, True)
    service(owns(mirrored=Mirrored(allowed=False)), world).leave()
    assert world.requests == [Heartbeat(), Leave({TP: ()}), REVOKED]
