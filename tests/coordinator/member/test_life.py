"""The life of a member: an outage, each verdict of Redis, and how it joins."""

from collections.abc import Mapping
from dataclasses import replace
from itertools import product

import pytest

from coordinator.errors import (
    FencedMemberError,
    GroupBusyError,
    GroupNotSharedError,
    InvalidOptionError,
    RedisUnavailableError,
)
from coordinator.member import life, recovery
from coordinator.member.decision import Decision, LookAgain, Step
from coordinator.member.evidence import NOTHING, Evidence
from coordinator.member.requests import Claim, Event, Join, LogLine, ReadMetadata
from coordinator.member.state import Away, Life, Owning, Pacing, Shown, State
from coordinator.plan.planning import Cutting
from coordinator.progress.ownership import Fact
from coordinator.redis.replies import Joining, JoinReply, SeenState
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import OffsetByPartition, Topics
from coordinator.values.verdicts import Alone, Busy, Fenced, Lost, Missed, Recovering, Superseded, Verdict
from states import FRESH, LIFE, MEMBER, NOW, TP, asks, call, decided, end_of, fails, joined, refused

SILENT = RedisUnavailableError("redis:6379 does not answer", "start it")


def away(for_ms: int, of: Life = LIFE, *, waited: bool = False) -> State:
    return joined(life=replace(of, away=Away(NOW - for_ms, SILENT, waited)))


def test_redis_answers__go_on() -> None:
    assert decided(life.outage, joined(), call()) == Decision(joined())


def test_no_answer__wait_and_begin_again() -> None:
    assert decided(life.outage, away(0), call()) == Decision(away(0, waited=True), (), LookAgain(200))


def test_waited__try_again() -> None:
    assert decided(life.outage, away(500, waited=True), call()) == Decision(away(500, waited=True))


def test_just_before_redis_max_outage__wait() -> None:
    decision = decided(life.outage, away(59_999), call(max_outage_ms=60_000))
    assert decision == Decision(away(59_999, waited=True), (), LookAgain(200))


@pytest.mark.parametrize(
    ("of", "max_outage_ms", "for_ms", "words"),
    [
        pytest.param(LIFE, 60_000, 60_000, "for longer than redisMaxOutage (60000 ms)", id="reached before"),
        pytest.param(FRESH, 60_000, 5_000, "than the limit of a first contact (5000 ms)", id="never reached"),
        pytest.param(FRESH, 1_000, 1_000, "the limit of a first contact (1000 ms)", id="never reached, impatient"),
    ],
)
def test_no_answer_for_too_long__the_query_fails(of: Life, max_outage_ms: int, for_ms: int, words: str) -> None:
    decision = decided(life.outage, away(for_ms, of), call(max_outage_ms=max_outage_ms))
    assert decision == Decision(joined(life=of), (), fails(RedisUnavailableError, words))


STEPS: Mapping[type[Verdict], Step] = {
    Fenced: life.fenced,
    Lost: recovery.recover,
    Recovering: life.assert_positions,
    Busy: life.busy,
}
VERDICTS = [None, Fenced(), Lost("gone"), Recovering(), Busy("m-2", NOW, NOW), Superseded()]


@pytest.mark.parametrize(
    ("kind", "verdict"),
    [
        pytest.param(kind, verdict, id=f"{kind.__name__}-{type(verdict).__name__}")
        for kind, verdict in product(STEPS, VERDICTS)
        if not isinstance(verdict, kind)
    ],
)
def test_verdict__only_its_own_step_handles_it(kind: type[Verdict], verdict: Verdict | None) -> None:
    state = joined(life=replace(LIFE, verdict=verdict))
    assert decided(STEPS[kind], state, call()) == Decision(state)


@pytest.mark.parametrize(
    ("metadata", "by_whom"),
    [
        pytest.param({}, ", or its entry in Redis was deleted", id="no entry"),
        pytest.param(None, "of group 'g'. Remedy", id="Redis does not answer"),
        pytest.param(
            {"host": "h", "driver_pid": "7", "joined_at": "1000"},
            "'g': pid 7 on host h, at 1970-01-01T00:00:01+00:00. Remedy",
            id="all",
        ),
        pytest.param({"host": "h", "joined_at": "1000"}, ": pid unknown on host h, at 1970", id="no pid"),
        pytest.param({"host": "h", "joined_at": "soon"}, "of group 'g'. Remedy", id="a damaged time"),
        pytest.param({"host": "h", "joined_at": "9" * 30}, "of group 'g'. Remedy", id="no time on earth"),
        pytest.param({"joined_at": "1000"}, "of group 'g'. Remedy", id="no host"),
    ],
)
def test_fenced__the_query_ends(metadata: Mapping[str, str] | None, by_whom: str) -> None:
    decision = decided(life.fenced, refused(Fenced()), call(), (ReadMetadata(MEMBER, anyway=True), metadata))
    event = Event("fence", "the member was started again, so its earlier life ends")
    assert decision == Decision(joined(), (event,), fails(FencedMemberError, by_whom))


RECOVERS = LogLine(
    "group g recovers from a loss of state: members prove their positions, and no batch is planned for up to "
    "sessionTimeout (45000 ms); no action is needed"
)
ASSERTED = replace(LIFE, asserted_at=LIFE.nonce)


def test_recovering__assert_once_and_wait() -> None:
    known, claim = Evidence(end_of(10, 20)), Claim(end_of(10, 20), {TP: (Fact(WHOLE, 10),)})
    decision = decided(life.assert_positions, refused(Recovering(), evidence=known), call())
    assert decision == Decision(joined(life=ASSERTED, evidence=known), (claim, RECOVERS), LookAgain(200))


def test_recovering_with_nothing_to_assert__wait() -> None:
    decision = decided(life.assert_positions, refused(Recovering()), call())
    assert decision == Decision(joined(life=ASSERTED), (RECOVERS,), LookAgain(200))


def test_recovering_still__wait_without_another_assertion() -> None:
    known = Evidence(end_of(10, 20))
    decision = decided(life.assert_positions, refused(Recovering(), ASSERTED, evidence=known), call())
    assert decision == Decision(joined(life=ASSERTED, evidence=known), (), LookAgain(200))


def test_recovering_again_at_another_nonce__assert_again() -> None:
    known, before = Evidence(end_of(10, 20)), replace(LIFE, asserted_at="n-0")
    decision = decided(life.assert_positions, refused(Recovering(), before, evidence=known), call())
    assert decision.effects == (Claim(end_of(10, 20), {TP: (Fact(WHOLE, 10),)}), RECOVERS)


def test_recovering_before_this_life_has_joined__assert_too() -> None:
    """The join waits for the end of the recovery, and the checkpoint of an earlier life proves positions."""
    known, new = Evidence(end_of(10, 20)), replace(LIFE, nonce="", nonce_before="")
    decision = decided(life.assert_positions, refused(Recovering(), new, evidence=known), call())
    assert decision.effects == (Claim(end_of(10, 20), {TP: (Fact(WHOLE, 10),)}), RECOVERS)
    waiting = refused(Recovering(), replace(new, asserted_at=""), evidence=known)
    assert decided(life.assert_positions, waiting, call()).effects == ()


BUSY = Busy("m-2", NOW + 10_000, NOW)


def test_busy__wait_for_the_end_of_the_other_lease() -> None:
    decision = decided(life.busy, refused(BUSY), call(), (ReadMetadata("m-2"), {}))
    assert decision == Decision(joined(life=replace(LIFE, other=("m-2", NOW + 10_000))), (), LookAgain(200))


def test_busy_just_before_the_end_of_the_other_lease__wait_no_longer_than_that() -> None:
    decision = decided(life.busy, refused(Busy("m-2", NOW + 10, NOW)), call(), (ReadMetadata("m-2"), {}))
    assert decision.outcome == LookAgain(11)


@pytest.mark.parametrize(
    "other",
    [
        pytest.param(("m-2", NOW + 10_000), id="the lease has not grown"),
        pytest.param(("m-3", NOW), id="another member than before"),
    ],
)
def test_busy_again__wait(other: tuple[str, int]) -> None:
    decision = decided(life.busy, refused(BUSY, replace(LIFE, other=other)), call(), (ReadMetadata("m-2"), {}))
    assert decision == Decision(joined(life=replace(LIFE, other=("m-2", NOW + 10_000))), (), LookAgain(200))


def test_busy_with_a_lease_that_grows__two_queries_of_one_application() -> None:
    waiting = replace(LIFE, other=("m-2", NOW + 9_999))
    decision = decided(life.busy, refused(BUSY, waiting), call(), (ReadMetadata("m-2"), {"query": "q-2"}))
    assert decision == Decision(joined(life=waiting), (), fails(GroupBusyError, "already has member m-2 at work"))


def test_busy_with_a_read_of_the_same_query__fail_at_once() -> None:
    me = Joining({"query": "q-1"})
    decision = decided(life.busy, refused(BUSY), call(me=me), (ReadMetadata("m-2"), {"query": "q-1"}))
    assert decision == Decision(joined(), (), fails(GroupBusyError, "member m-2 of group 'g' is a read of this query"))


@pytest.mark.parametrize(
    ("theirs", "words"),
    [pytest.param("m-2", "that query has sharing=never", id="theirs"), pytest.param("", "this query has", id="ours")],
)
def test_alone_with_a_lease_that_grows__one_of_the_two_reads_alone(theirs: str, words: str) -> None:
    """Rule: one-application."""
    waiting, verdict = replace(LIFE, other=("m-2", NOW + 9_999)), Alone("m-2", NOW + 10_000, NOW, theirs)
    decision = decided(life.busy, refused(verdict, waiting), call(), (ReadMetadata("m-2"), {}))
    assert decision == Decision(joined(life=waiting), (), fails(GroupNotSharedError, words))


def test_missed__the_query_ends_at_once() -> None:
    """Rule: one-application."""
    decision = decided(life.busy, refused(Missed()), call())
    assert decision == Decision(joined(), (), fails(GroupNotSharedError, "has read it in between"))


REPORTED = {
    "topics": "orders",
    "capacity": "1",
    "allow.individual.commit": "true",
    "protocols": "grouped 1",
    "max.individual.commits": "10000",
    "longest.batch.ms": "300000",
    "batch.time.budget": "10000",
}
JOINED = JoinReply(SeenState("n-2", 1), NOW + 45_000, {})


def test_has_joined__go_on() -> None:
    assert decided(life.join, joined(), call()) == Decision(joined())


def test_rejoin__join_again_at_the_nonce_before() -> None:
    waits = replace(LIFE.rejoining(), other=("m-2", NOW), verdict=Superseded())
    decision = decided(life.join, joined(life=waits), call(), (Join("n-1", Joining(REPORTED)), JOINED))
    there = replace(LIFE, nonce="n-2", nonce_before="n-2", seq=1, lease_end_ms=NOW + 45_000)
    assert decision == Decision(joined(life=there, owning=Owning(topics=frozenset({"orders"}))))


def test_join__report_the_fields_for_assignors_and_the_commit_api() -> None:
    me = Joining({"host": "h", "query": "q"}, "app")
    state = joined(life=LIFE.rejoining(), shown=Shown(slow_percent=40))
    ours = call(me=me, capacity=3, sharing=False, max_individual_commits=7, longest_ms=60_000)
    reported = {
        **REPORTED,
        "host": "h",
        "query": "q",
        "capacity": "3",
        "allow.individual.commit": "false",
        "slow_percent": "40",
        "max.individual.commits": "7",
        "longest.batch.ms": "60000",
    }
    assert decided(life.join, state, ours) == asks(state, Join("n-1", Joining(reported, "app")))


def test_join_with_joined_topics__be_the_one_reader_of_each_topic_in_the_query() -> None:
    ours = call(cutting=Cutting(1, joined=("orders", "payments")), me=Joining({"query": "q"}, "app"))
    rejoins = joined(life=LIFE.rejoining())
    asked = Joining({**REPORTED, "query": "q"}, "app", topics=("orders",))
    assert asked.alone_as == ["app orders", "q orders"]
    assert decided(life.join, rejoins, ours) == asks(rejoins, Join("n-1", replace(asked, alone="q")))
    shared = replace(ours, setup=replace(ours.setup, settings=replace(ours.setup.settings, demanding=True)))
    assert decided(life.join, rejoins, shared) == asks(rejoins, Join("n-1", asked)), "sharing=required asks for it"


@pytest.mark.parametrize("returns", [False, True])
def test_join_to_read_alone__under_the_name_of_the_checkpoint(returns: bool) -> None:
    """Rule: one-application."""
    rejoins = joined(life=LIFE.rejoining())
    alone = call(alone=True, offset=replace(NOTHING, member=MEMBER) if returns else NOTHING)
    asked = Joining(REPORTED, alone=MEMBER, returns=returns)
    assert decided(life.join, rejoins, alone) == asks(rejoins, Join("n-1", asked))


def test_join_with_a_part_of_the_joined_topics__of_an_unknown_query__refuse() -> None:
    rejoins, cutting = joined(life=LIFE.rejoining()), Cutting(1, joined=("orders", "payments"))
    refusal = Decision(rejoins, (), fails(InvalidOptionError, "does not show which reads belong to one query"))
    assert decided(life.join, rejoins, call(cutting=cutting)) == refusal
    both = call(cutting=cutting, subscription=Topics(("orders", "payments")))
    assert decided(life.join, rejoins, both) == asks(rejoins, Join("n-1", Joining(REPORTED, topics=("orders",))))


@pytest.mark.parametrize(
    ("answered", "then"),
    [
        pytest.param({TP: 70}, {TP: 70}, id="raised to those of others"),
        pytest.param({}, {TP: 50}, id="no other member has targets"),
    ],
)
def test_join_with_targets__adopt_those_of_the_group(answered: OffsetByPartition, then: OffsetByPartition) -> None:
    state = joined(life=LIFE.rejoining(), pace=Pacing({TP: 50}))
    request = Join("n-1", Joining(REPORTED, targets={TP: 50}))
    decision = decided(life.join, state, call(), (request, replace(JOINED, targets=answered)))
    assert decision.state.pace == Pacing(then)


def test_join__remember_the_topics_that_it_reported() -> None:
    decision = decided(life.join, joined(life=LIFE.rejoining()), call(), (Join("n-1", Joining(REPORTED)), JOINED))
    assert decision.state.owning.topics == {"orders"}


def test_join_without_targets__take_none_from_others() -> None:
    state = joined(life=LIFE.rejoining())
    decision = decided(
        life.join, state, call(), (Join("n-1", Joining(REPORTED)), JoinReply(SeenState("n-2", 1), NOW, {TP: 70}))
    )
    assert decision.state.pace == Pacing()


def test_join__a_life_states_its_first_join_whenever_it_joins_again() -> None:
    before = joined(life=replace(LIFE.rejoining(), joined_at="70"))
    request = Join("n-1", Joining(REPORTED, joined_at="70"))
    assert decided(life.join, before, call(), (request, replace(JOINED, joined_at="70"))).state.life.joined_at == "70"
