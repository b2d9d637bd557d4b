"""Resets on real servers: voided state, refusals, and resets that only a mirror or a checkpoint knows."""

import json
from collections.abc import Iterator
from contextlib import closing
from typing import cast

import pytest
import redis

import kafka_groups
from command_runs import Run
from coordinator.errors import GroupBusyError, StateLostError
from coordinator.kafka.log import KafkaLog
from coordinator.progress.mirror import entry
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.redis.operator import OperatorVerbs
from coordinator.tools.operations.operations import Operator
from coordinator.tools.operations.reset_plan import ToOffset
from coordinator.values.offset_spec import Earliest
from coordinator.values.subscription import TopicPartition
from coordinator.values.verdicts import Superseded
from group_services import Group, batch, batches, read, records, slices_read, subscribed
from group_services import run as run_query
from kafka_logs import kafka_log
from resets import reset, reset_epoch
from streams import keyed


@pytest.fixture
def log(members: Group) -> Iterator[KafkaLog]:
    with closing(kafka_log(members.kafka.bootstrap)) as found:
        yield found


@pytest.fixture
def operator(members: Group, log: KafkaLog) -> Operator:
    return Operator(members.client, log, members.name)


def mirrored(members: Group, tp: TopicPartition) -> int:
    return kafka_groups.committed(members.kafka.bootstrap, members.name, tp.topic)[tp.partition]


# -- what is void then ---------------------------------------------------------------------------


@pytest.mark.parametrize("target", [0, 3, 7], ids=["back to the beginning", "back", "forward"])
def test_a_checkpoint_older_than_the_reset_resumes_at_the_offset_of_the_reset(
    run: Run, members: Group, tp: TopicPartition, target: int
) -> None:
    end = run_query(members, subscribed(tp))
    founding = members.redis.hget(GroupKeys(members.name).meta, "founding")
    members.kafka.produce(tp.topic, keyed(4))
    code, out, _ = reset(run, members, "--all-topics", "--to-offset", str(target), "--execute", "--json")
    assert (code, json.loads(out)["reset"]) == (0, reset_epoch(members))
    assert (members.state.stable, mirrored(members, tp)) == ({tp: target}, target)
    assert members.events[-1] == "reset"
    assert founding == members.redis.hget(GroupKeys(members.name).meta, "founding"), "it is the same group"

    service = members.service(subscribed(tp))
    assert records(*batches(service, end)) == read(tp, target, 9)
    assert members.state.stable == {tp: 9}


def test_an_unfinished_batch_of_before_the_reset_reads_nothing(
    run: Run, members: Group, tp: TopicPartition, log: KafkaLog
) -> None:
    killed, end = members.begun(subscribed(tp))
    members.lose(killed)
    reset(run, members, "--all-topics", "--to-offset", "3", "--execute")

    service = members.service(subscribed(tp))
    assert slices_read(service, end) == ()
    assert records(batch(service, end)) == read(tp, 3, 5)


def test_a_member_that_slept_through_a_reset_commits_nothing_and_goes_on_from_it(
    run: Run, members: Group, tp: TopicPartition
) -> None:
    sleeper, end = members.begun(subscribed(tp))
    members.lose(sleeper)
    reset(run, members, "--all-topics", "--to-offset", "2", "--execute")

    after = batch(sleeper, end)
    assert members.state.stable == {tp: 2}, "what its sink completed was before the reset"
    assert (records(after), after.reset) == (read(tp, 2, 5), reset_epoch(members))


def test_reset_epochs_are_never_used_twice(members: Group, tp: TopicPartition, operator: Operator) -> None:
    run_query(members, subscribed(tp))
    first = operator.reset(operator.plan_reset(None, ToOffset(1))).epoch
    assert abs(first - members.state.now_ms) < 60_000
    future = first + 10**9
    operator.reset(operator.plan_reset(None, ToOffset(2)))
    members.redis.hset(f"coop:v1:{{{members.name}}}:meta", "reset_epoch", future)
    assert operator.reset(operator.plan_reset(None, ToOffset(3))).epoch == future + 1

    verbs, state = OperatorVerbs.of_group(members.client, members.name), members.state
    with pytest.raises(Superseded):
        verbs.reset("ff", future + 2, future, "late", state.topics, {tp: 0})
    assert members.state.stable == {tp: 3}


def test_an_old_copy_of_redis_answers_right_after_the_reset__the_mirror_keeps_the_reset(
    members: Group, tp: TopicPartition, operator: Operator, monkeypatch: pytest.MonkeyPatch
) -> None:
    run_query(members, subscribed(tp))
    keys, check = GroupKeys(members.name), OperatorVerbs.check

    def then_of_before(verbs: OperatorVerbs) -> None:
        check(verbs)
        members.redis.hset(keys.meta, "reset_epoch", 0)
        members.redis.hset(keys.stable(tp.topic), str(tp.partition), 5)

    monkeypatch.setattr(OperatorVerbs, "check", then_of_before)
    operator.reset(operator.plan_reset(None, ToOffset(1)))
    assert mirrored(members, tp) == 1


def test_a_reset_that_was_planned_before_another_one_is_refused_and_the_mirror_is_of_the_other(
    members: Group, tp: TopicPartition, operator: Operator
) -> None:
    members.kafka.add_partitions(tp.topic, 2)
    run_query(members, subscribed(tp))
    second = operator.plan_reset({tp.topic: frozenset({1})}, ToOffset(0))
    first = operator.reset(operator.plan_reset({tp.topic: frozenset({0})}, ToOffset(1)))
    with pytest.raises(GroupBusyError, match="another operator has just reset"):
        operator.reset(second)
    assert reset_epoch(members) == first.epoch
    assert (members.state.stable[tp], mirrored(members, tp)) == (1, 1), "the second plan had it at 5"


# -- when it is refused ----------------------------------------------------------------------------


@pytest.mark.parametrize("execute", [[], ["--execute"]], ids=["dry run", "executed"])
def test_a_reset_is_refused_while_a_member_lives(
    run: Run, members: Group, tp: TopicPartition, execute: list[str]
) -> None:
    service = members.started(subscribed(tp), session_ms=60_000)
    batch(service, StreamOffset(members.name))
    code, out, err = reset(run, members, "--all-topics", "--to-latest", *execute)
    assert (code, out) == (1, "")
    assert err.startswith("GROUP_BUSY")
    assert members.state.stable == {tp: 0}


def refused_for_a_member_that_joins(members: Group, tp: TopicPartition, operator: Operator) -> None:
    """A reset of five records, between whose look and whose move a member joins."""
    end = run_query(members, subscribed(tp))
    planned = operator.plan_reset(None, Earliest())
    members.kafka.produce(tp.topic, keyed(1))
    batch(members.service(subscribed(tp), session_ms=60_000), end)
    with pytest.raises(GroupBusyError):
        operator.reset(planned)


def test_a_member_that_joins_between_the_look_and_the_reset_is_seen_and_the_mirror_is_put_right(
    members: Group, tp: TopicPartition, operator: Operator
) -> None:
    refused_for_a_member_that_joins(members, tp, operator)
    assert (members.state.stable, mirrored(members, tp), reset_epoch(members)) == ({tp: 5}, 5, 0)


def test_a_refused_reset_puts_the_leader_epoch_back_in_the_mirror(
    members: Group, tp: TopicPartition, operator: Operator, log: KafkaLog
) -> None:
    refused_for_a_member_that_joins(members, tp, operator)
    assert " epoch=0 " in log.group_offsets(members.name)[tp][1], "else a log that is cut later looks whole"


@pytest.mark.usefixtures("short_sessions")
def test_after_a_restart_of_redis_only_a_reset_of_everything_is_taken(
    members: Group, tp: TopicPartition, operator: Operator
) -> None:
    members.kafka.add_partitions(tp.topic, 2)
    run_query(members, subscribed(tp))
    members.restart_redis()
    with pytest.raises(StateLostError, match="restarted"):
        operator.plan_reset({tp.topic: frozenset({0})}, Earliest())
    operator.reset(operator.plan_reset(None, Earliest()))
    assert records(run_query(members, subscribed(tp))) == read(tp, 0, 5)


def test_a_topic_that_was_created_again_is_reset_as_a_whole_and_then_read(
    run: Run, members: Group, tp: TopicPartition
) -> None:
    end = run_query(members, subscribed(tp))
    members.kafka.recreate_topic(tp.topic)
    members.kafka.produce(tp.topic, keyed(3))
    code, _, err = reset(run, members, "--topic", f"{tp.topic}:0", "--to-earliest", "--execute")
    assert (code, err.startswith("CONFLICTING_OPTIONS")) == (2, True)
    assert reset(run, members, "--topic", tp.topic, "--to-earliest", "--execute")[0] == 0
    assert records(*batches(members.service(subscribed(tp)), end)) == read(tp, 0, 3)


# -- facts of another reset epoch ------------------------------------------------------------------


def test_a_mirror_of_a_newer_reset_than_redis_has_carries_the_reset_out(
    members: Group, tp: TopicPartition, log: KafkaLog
) -> None:
    """An operator's command that was killed after its first step."""
    run_query(members, subscribed(tp))
    log.commit_group_offsets(members.name, {tp: entry(2, 77, members.state.topics[tp.topic].id, None)})
    members.service(subscribed(tp)).first_positions()
    assert (members.state.stable, reset_epoch(members), members.events[-2:]) == ({tp: 2}, 77, ["recover", "continue"])


@pytest.mark.usefixtures("short_sessions")
def test_a_checkpoint_of_a_newer_reset_than_redis_has_is_a_loss_of_state(
    run: Run, members: Group, tp: TopicPartition
) -> None:
    end = run_query(members, subscribed(tp))
    members.kafka.produce(tp.topic, keyed(4))
    copy = copied(members)
    reset(run, members, "--all-topics", "--to-offset", "7", "--execute")
    epoch = reset_epoch(members)
    after = batch(members.service(subscribed(tp)), end)
    assert (records(after), after.reset) == (read(tp, 7, 9), epoch)
    restore(members, copy)
    assert (members.state.stable, reset_epoch(members)) == ({tp: 5}, 0)

    resumed = members.service(subscribed(tp))
    assert records(*batches(resumed, after)) == read(tp, 7, 9), "the batch that nobody had confirmed"
    assert (members.state.stable, reset_epoch(members)) == ({tp: 9}, epoch)
    assert "recover" in members.events


def copied(members: Group) -> dict[str, bytes]:
    with closing(redis.Redis.from_url(members.redis_url)) as raw:
        return {key: cast(bytes, raw.dump(key)) for key in members.keys}


def restore(members: Group, copy: dict[str, bytes]) -> None:
    """An old copy in the server that runs: its run id is the same; only members know the difference."""
    members.lose_everything()
    with closing(redis.Redis.from_url(members.redis_url)) as raw:
        for key, dumped in copy.items():
            raw.restore(key, 0, dumped)
