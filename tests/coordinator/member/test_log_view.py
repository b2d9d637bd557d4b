"""A member's view of Kafka: topics at most 1 s old, and the ends of logs."""

from dataclasses import replace

from coordinator.errors import RedisUnavailableError
from coordinator.member import log_view
from coordinator.member.decision import Decision, Seen
from coordinator.member.requests import ReadEpochEnds, ReadLogEnds, ReadTopics
from coordinator.member.state import UNSEEN, Away, LogView, Low
from coordinator.progress.leader_epochs import Extent
from coordinator.values.subscription import Bounds
from states import GROWN, GROWN_LOG, LIFE, LOG, NOW, ORDERS, RECREATED, TP, TP1, asks, call, decided, joined

OLD = replace(LOG, asked_ms=NOW - 1_000)
ENDS = {TP: Bounds(5, 120)}


def test_topics_are_fresh__keep_them() -> None:
    state = joined(log=replace(LOG, asked_ms=NOW - 999))
    assert decided(log_view.see_topics, state, call()) == Decision(state)


def test_topics_were_never_read__read_them() -> None:
    state = joined(log=LogView())
    assert decided(log_view.see_topics, state, call()) == asks(state, ReadTopics())


def test_topics_are_old_while_redis_is_away__read_nothing_at_each_retry() -> None:
    silent = Away(NOW - 2_000, RedisUnavailableError("redis:6379 does not answer", "start it"), waited=True)
    state = joined(log=OLD, life=replace(LIFE, away=silent))
    assert decided(log_view.see_topics, state, call()) == Decision(state)


def test_topics_are_a_second_old__read_them_and_the_beginnings_again() -> None:
    decision = decided(log_view.see_topics, joined(log=OLD), call(), (ReadTopics(), {"orders": ORDERS}))
    assert decision == Decision(joined(log=replace(LOG, beginnings=None)))


def test_a_topic_has_grown__there_is_a_new_partition() -> None:
    decision = decided(log_view.see_topics, joined(log=OLD), call(), (ReadTopics(), {"orders": GROWN}))
    grown = replace(LOG, topics={"orders": GROWN}, partitions=(TP, TP1), beginnings=None)
    assert decision == Decision(joined(log=grown))


def test_log_ends__read_with_the_beginnings_that_are_known() -> None:
    decision = decided(log_view.see_logs, joined(), call(), (ReadLogEnds((TP,), {TP: 0}), ENDS))
    assert decision == Decision(joined(log=replace(LOG, bounds=ENDS)))


def test_beginnings_are_not_known__remember_those_that_were_read() -> None:
    state = joined(log=replace(LOG, beginnings=None))
    decision = decided(log_view.see_logs, state, call(), (ReadLogEnds((TP,), None), ENDS))
    assert decision == Decision(joined(log=replace(LOG, bounds=ENDS, beginnings={TP: 5})))


def test_a_leader_that_has_never_answered__its_beginning_is_asked_for_at_the_next_look() -> None:
    state = joined(log=replace(GROWN_LOG, beginnings=None, bounds={}))
    log = decided(log_view.see_logs, state, call(), (ReadLogEnds((TP, TP1), None), ENDS)).state.log
    assert (dict(log.bounds), log.silent, log.beginnings) == ({**ENDS, TP1: UNSEEN}, frozenset({TP1}), None)


def test_log_ends_are_equal__the_view_stays_the_same_object() -> None:
    decision = decided(log_view.see_logs, joined(), call(), (ReadLogEnds((TP,), {TP: 0}), {TP: Bounds(0, 100)}))
    assert decision.state.log is LOG


def test_a_topic_has_vanished__read_the_topics_and_then_strictly() -> None:
    decision = decided(
        log_view.see_logs,
        joined(log=GROWN_LOG),
        call(),
        (ReadLogEnds((TP, TP1), {TP: 0, TP1: 0}), None),
        (ReadTopics(), {"orders": ORDERS}),
        (ReadLogEnds((TP,), None, strict=True), ENDS),
    )
    assert decision == Decision(joined(log=replace(LOG, bounds=ENDS, beginnings={TP: 5})))


def test_a_topic_was_recreated__earlier_ends_are_forgotten() -> None:
    log = replace(OLD, low={TP: Low(-1, NOW)})
    decision = decided(log_view.see_topics, joined(log=log), call(), (ReadTopics(), {"orders": RECREATED}))
    assert (decision.state.log.reached, decision.state.log.low) == ({}, {})


LATER = replace(LOG, bounds={TP: Bounds(0, 100, epoch=4)})
KEY = ("id-1", TP, 3, 4)


def test_a_newer_leader_epoch__read_where_the_older_one_ends() -> None:
    seen = Seen(NOW).with_answer(ReadEpochEnds({TP: 3}), {TP: 60})
    assert log_view.with_epoch_ends(LATER, {TP: Extent(3, 80)}, seen) == (
        replace(LATER, epoch_ends={KEY: 60}),
        {TP: 60},
    )


def test_an_end_of_a_leader_epoch_that_is_known__read_nothing() -> None:
    known = replace(LATER, epoch_ends={KEY: 60})
    assert log_view.with_epoch_ends(known, {TP: Extent(3, 80)}, Seen(NOW)) == (known, {TP: 60})


def test_a_broker_that_does_not_know_the_leader_epoch__is_not_asked_twice() -> None:
    seen = Seen(NOW).with_answer(ReadEpochEnds({TP: 3}), {})
    known, ends = log_view.with_epoch_ends(LATER, {TP: Extent(3, 80)}, seen)
    assert ends == {}
    assert log_view.with_epoch_ends(known, {TP: Extent(3, 80)}, Seen(NOW)) == (known, {})


def test_the_same_leader_epoch__nothing_was_cut() -> None:
    assert log_view.with_epoch_ends(LATER, {TP: Extent(4, 80), TP1: Extent(1, 9)}, Seen(NOW)) == (LATER, {})


def test_another_topic_id__recreated() -> None:
    log = replace(LOG, topics={"orders": RECREATED})
    assert [str(loss) for loss in log_view.recreated(log, {"orders": "id-1"})] == [
        "topic 'orders' was deleted and created again (topic id id-1, now id-2)"
    ]
    assert log_view.recreated(log, {"orders": "id-2"}) == ()


def test_a_newer_leader_epoch_of_a_silent_leader__its_ends_are_asked_for_once_it_answers() -> None:
    log = replace(LOG, bounds={TP: Bounds(0, 120, 5)}, silent=frozenset({TP}))
    assert log_view.with_epoch_ends(log, {TP: Extent(3, 100)}, Seen(NOW)) == (log, {})
