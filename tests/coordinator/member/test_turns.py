"""Turns: the steps of a call of Spark, run on a world whose answers are written down."""

from collections.abc import Collection, Sequence
from dataclasses import replace
from itertools import cycle
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from coordinator.errors import KafkaUnavailableError, RedisNotReadyError, RedisUnavailableError
from coordinator.member import life
from coordinator.member.decision import Call, Decision, Fail, LookAgain, Return, Seen, Step
from coordinator.member.invariants import BrokenInvariantError
from coordinator.member.kinds import Request
from coordinator.member.requests import (
    Acquire,
    Event,
    Finish,
    Heartbeat,
    LogLine,
    Mirror,
    ReadResetEpoch,
    ReadStatus,
    ReadStrikes,
    ReadTopics,
)
from coordinator.member.state import Away, Life, State, Turn
from coordinator.member.turns import refused, unanswered
from coordinator.redis.replies import Caller
from coordinator.values.ranges import WHOLE
from coordinator.values.verdicts import Fenced, Lost, Recovering, Rejoin
from states import (
    FRESH,
    LIFE,
    MEMBER,
    NONCE,
    NOW,
    ORDERS,
    TP,
    call,
    held,
    joined,
    like,
)
from written_worlds import SESSION_MS, Hands, Script, answered, turns


def asking(*wanted: Request[Any]) -> Step:
    """A step that asks for this, and returns the answers."""

    def step(state: State, seen: Seen, call: Call) -> Decision:
        return Decision(state, (), Return([seen.done(request) for request in wanted]))

    return step


def going_on(*effects: Request[Any]) -> Step:
    """A step with these effects."""

    def step(state: State, seen: Seen, call: Call) -> Decision:
        return Decision(state, effects)

    return step


ACQUIRE = Acquire({TP: (WHOLE,)})
TOPICS = {"orders": ORDERS}


def test_asks__the_step_runs_again_with_the_answers() -> None:
    world = Script(3, ())
    assert turns(world).run([asking(ReadResetEpoch(), ReadStrikes())], call()) == [3, ()]
    assert world.requests == [ReadResetEpoch(), ReadStrikes()]


def test_next__the_next_step_sees_none_of_the_answers_before() -> None:
    def first(state: State, seen: Seen, call: Call) -> Decision:
        seen.of(ReadResetEpoch())
        return Decision(state)

    world = Script(3, 4)
    assert turns(world).run([first, asking(ReadResetEpoch())], call()) == [4]


def test_look_again__wait_and_begin_with_the_first_step_without_answers() -> None:
    def second(state: State, seen: Seen, call: Call) -> Decision:
        return Decision(state, (), LookAgain(200) if seen.of(ReadResetEpoch()) == 3 else Return("done"))

    world, clock = Script(None, 3, None, 4), Hands()
    assert turns(world, clock=clock).run([going_on(LogLine("first")), second], call()) == "done"
    assert world.requests == [LogLine("first"), ReadResetEpoch(), LogLine("first"), ReadResetEpoch()]
    assert clock.waits == [200]


def test_effects__are_applied_in_their_order() -> None:
    world = Script(None, None)
    turns(world).run([going_on(LogLine("one"), Event("two", "")), asking()], call())
    assert world.requests == [LogLine("one"), Event("two", "")]


def test_fail__the_error_is_raised_once_the_effects_are_applied() -> None:
    error = KafkaUnavailableError("no broker")

    def step(state: State, seen: Seen, call: Call) -> Decision:
        return Decision(state, (LogLine("last"),), Fail(error))

    world = Script(None)
    with pytest.raises(KafkaUnavailableError):
        turns(world).run([step], call())
    assert world.requests == [LogLine("last")]


def test_a_verdict_in_the_middle__begin_with_the_first_step() -> None:
    world = Script(None, Fenced(), None, 3)
    member = turns(world)
    assert member.run([going_on(LogLine("first")), asking(ReadResetEpoch())], call()) == [3]
    assert world.requests == [LogLine("first"), ReadResetEpoch()] * 2
    assert member.state.life == replace(LIFE, verdict=like(Fenced))


def test_a_verdict_on_an_effect__those_behind_it_are_not_applied() -> None:
    world = Script(Fenced(), None, None)
    turns(world).run([going_on(ReadStrikes(), LogLine("behind")), asking()], call())
    assert world.requests == [ReadStrikes(), ReadStrikes(), LogLine("behind")]


@pytest.mark.parametrize(
    ("verdict", "then"),
    [
        pytest.param(Rejoin(), LIFE.rejoining(), id="rejoin: it must join again"),
        pytest.param(Lost(), replace(LIFE, verdict=like(Lost)), id="lost: until it is recovered"),
        pytest.param(Recovering(), replace(LIFE, verdict=like(Recovering)), id="recovering: until that is over"),
        pytest.param(Fenced(), replace(LIFE, verdict=like(Fenced)), id="fenced: until the query ends"),
    ],
)
def test_refused__the_life_waits_for_the_step_of_the_verdict(verdict: Any, then: Life) -> None:
    assert refused(LIFE, verdict) == then


SILENT = RedisUnavailableError("redis:6379 does not answer", "start it")
FULL = RedisNotReadyError("redis:6379 takes no writes: its memory is full", "make room")


def test_unanswered__away_since_the_first_call_that_was_not() -> None:
    one = unanswered(LIFE, SILENT, NOW, ReadStatus)
    assert one == replace(LIFE, away=Away(NOW, SILENT, unanswered=frozenset({ReadStatus})))
    waited = replace(one, away=one.away and replace(one.away, waited=True))
    assert unanswered(waited, SILENT, NOW + 300, ReadStatus) == one
    both = frozenset({ReadStatus, ReadStrikes})
    assert unanswered(waited, SILENT, NOW + 300, ReadStrikes).away == Away(NOW, SILENT, unanswered=both)


def test_answered__an_outage_is_over_once_each_kind_of_request_has_an_answer() -> None:
    life = unanswered(unanswered(LIFE, SILENT, NOW, ReadStatus), SILENT, NOW, ReadStrikes)
    assert life.answered(ReadResetEpoch) == life, "it answers something else"
    assert life.answered(ReadStatus).away == Away(NOW, SILENT, unanswered=frozenset({ReadStrikes}))
    assert life.answered(ReadStatus).answered(ReadStrikes) == LIFE


@pytest.mark.parametrize(("error", "reached"), [(SILENT, False), (FULL, True)])
def test_unanswered__a_refusal_shows_that_there_is_a_redis(error: RedisUnavailableError, *, reached: bool) -> None:
    assert unanswered(FRESH, error, NOW, ReadStatus).reached is reached


def test_an_outage__is_waited_for_and_ends_in_the_named_error() -> None:
    world, clock = Script(*[SILENT] * 6), Hands()
    member = turns(world, clock=clock)
    with pytest.raises(RedisUnavailableError, match=r"for longer than redisMaxOutage \(1000 ms\)"):
        member.run([life.outage, asking(ReadResetEpoch())], call(max_outage_ms=1_000))
    assert clock.waits == [200] * 5
    assert member.state.life == LIFE


def test_an_outage_that_ends__go_on() -> None:
    world, clock = Script(SILENT, SILENT, 3), Hands()
    member = turns(world, joined(life=replace(LIFE, reached=False)), clock)
    assert member.run([life.outage, asking(ReadResetEpoch())], call()) == [3]
    assert (clock.waits, member.state.life) == ([200, 200], LIFE)


ASKED: Sequence[tuple[Request[Any], Any]] = (
    (ReadResetEpoch(), 3),
    (ReadStrikes(), ()),
    (ReadStatus(), None),
    (ACQUIRE, answered(held())),
)
"""Requests with their answers."""


class Flaky(Script):
    """A world that never answers some kinds of requests, refuses others now and then, and takes its time."""

    def __init__(self, clock: Hands, never: Collection[int], fates: Sequence[tuple[str, int]]) -> None:
        super().__init__()
        self.clock, self.never, self.fates = clock, never, cycle(fates)
        self.lines = [clock.now]

    def answer(self, request: Request[Any], caller: Caller) -> Any:
        if request.kind is LogLine:
            self.lines.append(self.clock.now)
            return True
        fate, ms = next(self.fates)
        self.clock.now += ms
        number = next(i for i, (known, _) in enumerate(ASKED) if known == request)
        if number in self.never or fate != "answer":
            raise SILENT if fate == "silence" else FULL
        return ASKED[number][1]


FATES = st.tuples(st.sampled_from(["answer", "answer", "silence", "refusal"]), st.integers(0, 4_000))


@given(
    st.lists(st.integers(0, len(ASKED) - 1), min_size=1, unique=True),
    st.sets(st.integers(0, len(ASKED) - 1)),
    st.lists(FATES, min_size=1, max_size=6),
    st.integers(1, 60_000),
)
def test_no_call_waits_without_an_end_and_none_waits_ten_seconds_without_a_line(
    asked: list[int], never: set[int], fates: list[tuple[str, int]], limit: int
) -> None:
    """Whatever Redis answers meanwhile, a request that it never answers ends the call (rule: redis-outage)."""
    assume(never & {*asked} or any(fate == "answer" for fate, _ in fates))
    clock = Hands()
    world = Flaky(clock, never, fates)
    try:
        turns(world, clock=clock).run(
            [life.outage, *(going_on_after(ASKED[i][0]) for i in asked), asking()], call(max_outage_ms=limit)
        )
        assert not never & {*asked}
    except RedisUnavailableError as error:
        assert "for longer than redisMaxOutage" in error.what
    longest = limit + (len(asked) + 2) * 4_200 * (len(fates) + 1)
    assert clock.now - NOW <= longest
    if clock.now - NOW > 10_000 + 4_000 * len(asked):
        assert world.lines[1] - NOW <= 10_000 + 4_000 * len(asked)


def going_on_after(request: Request[Any]) -> Step:
    """A step that needs an answer."""

    def step(state: State, seen: Seen, call: Call) -> Decision:
        seen.done(request)
        return Decision(state)

    return step


def test_two_outages_with_an_answer_between__each_has_its_own_patience() -> None:
    world, clock = Script(SILENT, SILENT, 3, SILENT, SILENT, 4, ()), Hands()
    member = turns(world, clock=clock)
    assert member.run([life.outage, asking(ReadResetEpoch(), ReadStrikes())], call(max_outage_ms=401)) == [4, ()]
    assert clock.waits == [200] * 4


@pytest.mark.parametrize("request_", [ReadTopics(), Mirror((TP,), ("orders",))])
def test_kafka_does_not_answer__the_error_is_the_callers(request_: Request[Any]) -> None:
    world = Script(KafkaUnavailableError("no broker"))
    with pytest.raises(KafkaUnavailableError):
        turns(world).run([asking(request_)], call())


def test_calls_of_a_member__have_ascending_numbers_and_the_others_none() -> None:
    world = Script(answered(held()), 3, answered(True), answered(held()))
    member = turns(world)
    member.run([asking(ACQUIRE, ReadResetEpoch(), Finish({}))], call())
    member.run([asking(ACQUIRE)], call())
    assert world.numbers == ["1", "", "2", "3"]


def test_a_call_that_is_made_again__has_a_number_of_its_own() -> None:
    world = Script(SILENT, answered(held()))
    turns(world).run([life.outage, asking(ACQUIRE)], call())
    assert world.numbers == ["1", "2"]


def test_the_caller__is_this_life_as_the_store_saw_it_last() -> None:
    world = Script(answered(True, seq=9), answered(True))
    turns(world).run([asking(Finish({}), Finish({TP: 5}))], call())
    assert [caller for _, caller in world.asked] == [
        Caller(MEMBER, "i-1", NONCE, "5", "1"),
        Caller(MEMBER, "i-1", NONCE, "9", "2"),
    ]


class Late(Script):
    """A world whose answers come seven seconds after the question."""

    def __init__(self, clock: Hands, *answers: Any) -> None:
        super().__init__(*answers)
        self.clock = clock

    def answer(self, request: Request[Any], caller: Caller) -> Any:
        self.clock.now += 7_000
        return super().answer(request, caller)


def test_an_answer_of_redis__renews_the_lease_from_the_moment_of_the_call() -> None:
    clock = Hands()
    member = turns(Late(clock, answered(True)), joined(life=replace(LIFE, lease_end_ms=NOW)), clock)
    member.run([asking(Finish({}))], call())
    assert member.state.life == replace(LIFE, seq=9, lease_end_ms=NOW + SESSION_MS)


def test_an_answer_of_another_nonce__is_late_and_renews_nothing() -> None:
    member = turns(Script(answered(True, nonce="n-0")))
    assert member.run([asking(Finish({}))], call()) == [True]
    assert member.state.life == LIFE


def test_a_renewal_of_the_heartbeat_thread__reaches_the_state_of_the_main_thread() -> None:
    over, clock = joined(life=replace(LIFE, lease_end_ms=NOW)), Hands()
    member = turns(Late(clock, answered(None)), over, clock)
    member.once(Heartbeat())
    assert member.state == over
    member.run([asking()], call())
    assert member.state == joined(life=replace(LIFE, seq=9, lease_end_ms=NOW + SESSION_MS))


def test_a_renewal_of_an_older_nonce__changes_nothing() -> None:
    member = turns(Script(answered(None, nonce="n-0")))
    member.once(Heartbeat())
    member.run([asking()], call())
    assert member.state.life == LIFE


def test_a_call_without_retries__its_verdict_is_the_callers_and_the_state_stays() -> None:
    member = turns(Script(Fenced(), SILENT))
    with pytest.raises(Fenced):
        member.once(Heartbeat())
    with pytest.raises(RedisUnavailableError):
        member.once(Heartbeat())
    assert member.state == joined()


def test_a_write_that_is_read__is_a_mistake_of_the_step() -> None:
    def step(state: State, seen: Seen, call: Call) -> Decision:
        return Decision(state, (), Return(seen.of(Finish({}))))

    with pytest.raises(AssertionError, match="an effect, or `done`"):
        turns(Script()).run([step], call())


def test_redis_refuses_an_effect__the_state_is_the_one_before_the_step() -> None:
    def stale(state: State, seen: Seen, call: Call) -> Decision:
        return Decision(replace(state, owning=replace(state.owning, stale=True)), (ACQUIRE,))

    world = Script(Fenced(), answered(held()))
    member = turns(world)
    states: list[State] = []

    def first(state: State, seen: Seen, call: Call) -> Decision:
        states.append(state)
        return Decision(state)

    member.run([first, stale, asking()], call())
    assert states == [joined(), joined(life=replace(LIFE, verdict=like(Fenced)))]
    assert member.state.owning.stale


def test_a_call_beside_another__has_its_own_state_and_no_verdict() -> None:
    before = joined(life=replace(LIFE, verdict=Recovering()))
    member = turns(Script(SILENT, 3), before)
    assert member.beside([life.outage, asking(ReadResetEpoch())], call()) == [3]
    assert member.state == before


def test_a_new_call__begins_a_new_turn() -> None:
    member = turns(Script(), joined(turn=Turn(learned=True, committed=True, fresh=True)))
    member.run([asking()], call())
    assert member.state.turn == Turn()


def test_each_state__is_watched() -> None:
    def broken(state: State, seen: Seen, call: Call) -> Decision:
        return Decision(replace(state, turn=Turn(skipped=True)))

    world = Script()
    with pytest.raises(BrokenInvariantError):
        turns(world).run([broken], call())
    assert world.states == [joined()]


def test_a_step__sees_the_time_of_the_clock() -> None:
    def step(state: State, seen: Seen, call: Call) -> Decision:
        return Decision(state, (), Return(seen.now_ms) if seen.now_ms > NOW else LookAgain(50))

    assert turns(Script()).run([step], call()) == NOW + 50
