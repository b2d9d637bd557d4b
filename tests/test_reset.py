"""An operator moves a group's positions, on a real broker and a real Redis: what goes where, and what is void then."""

import json
from collections.abc import Iterator
from contextlib import closing
from datetime import UTC, datetime
from pathlib import Path
from typing import cast

import pytest
import redis

import kafka_groups
from command_runs import Run
from conftest import SecureListener
from coordinator.cli.operator_commands import _time_ms
from coordinator.errors import GroupBusyError, StateLostError
from coordinator.kafka.log import KafkaLog
from coordinator.offset_spec import Earliest
from coordinator.operations.operations import Operator
from coordinator.operations.reset_plan import ToOffset
from coordinator.progress.mirror import entry
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.operator import OperatorVerbs
from coordinator.subscription import TopicPartition
from coordinator.verdicts import Superseded
from group_services import Group, batch, batches, read, records, subscribed
from group_services import run as run_query
from kafka_logs import T0, THREE_SECONDS, delete_records, kafka_log
from streams import eventually, keyed
from topics import Record


@pytest.fixture
def log(members: Group) -> Iterator[KafkaLog]:
    with closing(kafka_log(members.kafka.bootstrap)) as found:
        yield found


@pytest.fixture
def operator(members: Group, log: KafkaLog) -> Operator:
    return Operator(members.client, log, members.name)


def reset(run: Run, members: Group, *arguments: str) -> tuple[object, str, str]:
    place = ("--redis", members.redis_url, "--bootstrap-server", members.kafka.bootstrap)
    return run("reset-offsets", members.name, *place, *arguments)


def reset_epoch(members: Group) -> int:
    return int(members.state.meta["reset_epoch"])


def mirrored(members: Group, tp: TopicPartition) -> int:
    return kafka_groups.committed(members.kafka.bootstrap, members.name, tp.topic)[tp.partition]


def leases_are_over(members: Group) -> bool:
    return all(end < members.state.now_ms for end in members.state.leases_ms.values())


# -- what goes where -----------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("arguments", "expected", "clipped"),
    [
        pytest.param(["--to-earliest"], 2, False, id="the beginning of the log"),
        pytest.param(["--to-latest"], 8, False, id="the end of the log"),
        pytest.param(["--to-offset", "4"], 4, False, id="an offset"),
        pytest.param(["--to-offset", "0"], 2, True, id="an offset before the log is its beginning"),
        pytest.param(["--to-offset", "99"], 8, True, id="an offset behind the log is its end"),
        pytest.param(["--shift-by", "-1"], 4, False, id="one back from the stable offset"),
        pytest.param(["--shift-by", "2"], 7, False, id="two on from the stable offset"),
    ],
)
def test_a_dry_run_tells_where_positions_would_go_and_changes_nothing(
    run: Run, members: Group, tp: TopicPartition, arguments: list[str], expected: int, clipped: bool
) -> None:
    run_query(members, subscribed(tp))
    members.kafka.produce(tp.topic, keyed(3))
    delete_records(members.kafka, tp, 2)
    before = members.state

    code, out, err = reset(run, members, "--topic", tp.topic, *arguments, "--json")

    assert (code, err) == (0, "")
    move = {"topic": tp.topic, "partition": 0, "before": 5, "after": expected, "clipped": clipped}
    assert json.loads(out) == {"executed": False, "reset": None, "partitions": [move]}
    assert (members.state.segments, members.state.meta) == (before.segments, before.meta)


def test_a_time_means_its_first_record_and_one_after_all_records_the_end(run: Run, members: Group) -> None:
    tp = TopicPartition(members.kafka.create_topic("times"), 0)
    members.kafka.produce(tp.topic, THREE_SECONDS)
    run_query(members, subscribed(tp))
    second = datetime.fromtimestamp((T0 + 1_500) / 1000, UTC)
    without_zone = second.replace(tzinfo=None)
    for time, expected in ((second.isoformat(), 1), (without_zone.isoformat(), 1), ("2999-01-01", 3)):
        code, out, _ = reset(run, members, "--all-topics", "--to-datetime", time, "--json")
        assert (code, json.loads(out)["partitions"][0]["after"]) == (0, expected)


@pytest.mark.parametrize(
    ("text", "ms"),
    [
        pytest.param("1970-01-01", 0, id="the first time that Kafka has"),
        pytest.param("1970-01-01T01:00:00.001+01:00", 1, id="a zone and a millisecond"),
        pytest.param("1970-01-01T00:00:00.000001", 1, id="a microsecond: a record before it is not at or after it"),
        pytest.param("9999-12-31T23:59:59.999", 253_402_300_799_999, id="the last time of the calendar"),
    ],
)
def test_a_time_is_the_first_millisecond_at_or_after_it(text: str, ms: int) -> None:
    assert _time_ms(text) == ms


def test_only_the_partitions_that_are_named_move(run: Run, members: Group, tp: TopicPartition) -> None:
    members.kafka.add_partitions(tp.topic, 3)
    run_query(members, subscribed(tp))
    members.kafka.produce(tp.topic, [Record(b"v", partition=p) for p in (0, 1, 1, 2)])
    code, out, _ = reset(run, members, "--topic", f"{tp.topic}:1,2", "--to-latest", "--execute")
    assert code == 0
    head, *rows, end = out.splitlines()
    assert head.split() == ["TOPIC", "PARTITION", "WAS", "IS", "NOW", "BY"], "of what was done"
    assert [row.split()[1:] for row in rows] == [["1", "0", "2", "+2"], ["2", "0", "1", "+1"]]
    assert end == f"Moved 2 partitions: this is reset epoch {members.state.meta['reset_epoch']}."
    assert members.state.stable == {tp: 5, TopicPartition(tp.topic, 1): 2, TopicPartition(tp.topic, 2): 1}


# -- what is void then ---------------------------------------------------------------------------


@pytest.mark.parametrize("target", [0, 3, 7], ids=["back to the beginning", "back", "forward"])
def test_a_checkpoint_of_before_the_reset_resumes_where_the_reset_says(
    run: Run, members: Group, tp: TopicPartition, target: int
) -> None:
    end = run_query(members, subscribed(tp))
    members.kafka.produce(tp.topic, keyed(4))
    code, out, _ = reset(run, members, "--all-topics", "--to-offset", str(target), "--execute", "--json")
    assert (code, json.loads(out)["reset"]) == (0, reset_epoch(members))
    assert (members.state.stable, mirrored(members, tp)) == ({tp: target}, target)
    assert members.events[-1] == "reset"

    service = members.service(subscribed(tp))
    assert records(*batches(service, end)) == read(tp, target, 9)
    assert members.state.stable == {tp: 9}


def test_an_unfinished_batch_of_before_the_reset_reads_nothing(
    run: Run, members: Group, tp: TopicPartition, log: KafkaLog
) -> None:
    killed = members.service(subscribed(tp))
    killed.first_positions()
    end = batch(killed, StreamOffset(members.name))
    eventually(lambda: leases_are_over(members), "the killed member's lease ends")
    reset(run, members, "--all-topics", "--to-offset", "3", "--execute")

    service = members.service(subscribed(tp))
    assert service.authorize(end).slices == ()
    assert records(batch(service, end)) == read(tp, 3, 5)


def test_a_member_that_slept_through_a_reset_commits_nothing_and_goes_on_from_it(
    run: Run, members: Group, tp: TopicPartition
) -> None:
    sleeper = members.service(subscribed(tp))
    sleeper.first_positions()
    end = batch(sleeper, StreamOffset(members.name))
    eventually(lambda: leases_are_over(members), "the sleeper's lease ends")
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
    service = members.service(subscribed(tp), session_ms=60_000)
    service.first_positions()
    batch(service, StreamOffset(members.name))
    code, out, err = reset(run, members, "--all-topics", "--to-latest", *execute)
    assert (code, out) == (1, "")
    assert err.startswith("GROUP_BUSY")
    assert members.state.stable == {tp: 0}


def test_a_member_that_joins_between_the_look_and_the_reset_is_seen_and_the_mirror_is_put_right(
    members: Group, tp: TopicPartition, operator: Operator
) -> None:
    end = run_query(members, subscribed(tp))
    planned = operator.plan_reset(None, Earliest())
    members.kafka.produce(tp.topic, keyed(1))
    batch(members.service(subscribed(tp), session_ms=60_000), end)
    with pytest.raises(GroupBusyError):
        operator.reset(planned)
    assert (members.state.stable, mirrored(members, tp), reset_epoch(members)) == ({tp: 5}, 5, 0)


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
    log.commit_group_offsets(members.name, {tp: entry(2, 77, members.state.topics[tp.topic].id)})
    members.service(subscribed(tp)).first_positions()
    assert (members.state.stable, reset_epoch(members), members.events[-1]) == ({tp: 2}, 77, "recover")


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
    """An old copy in the server that runs: its run id is the same, only what members know tells the difference."""
    members.lose_everything()
    with closing(redis.Redis.from_url(members.redis_url)) as raw:
        for key, dumped in copy.items():
            raw.restore(key, 0, dumped)


# -- the command -----------------------------------------------------------------------------------


USAGE: dict[str, tuple[list[str], str]] = {
    "no target": (["--all-topics"], "exactly one of"),
    "two targets": (["--all-topics", "--to-latest", "--shift-by", "1"], "exactly one of"),
    "no topic": (["--to-latest"], "--all-topics"),
    "a topic and all": (["--to-latest", "--topic", "t", "--all-topics"], "--all-topics"),
    "no time": (["--all-topics", "--to-datetime", "yesterday"], "yesterday"),
    "an offset below zero": (["--all-topics", "--to-offset", "-3"], "--to-offset"),
}


@pytest.mark.parametrize(("arguments", "told"), USAGE.values(), ids=USAGE)
def test_wrong_usage_ends_with_2(run: Run, members: Group, arguments: list[str], told: str) -> None:
    code, out, err = reset(run, members, *arguments)
    assert (code, out) == (2, "")
    assert told in err


def test_what_the_group_does_not_read_is_told(run: Run, members: Group, tp: TopicPartition) -> None:
    assert reset(run, members, "--all-topics", "--to-latest")[2].startswith("UNKNOWN_GROUP")
    run_query(members, subscribed(tp))
    for topic, named, expected in (("other", "other", 1), (f"{tp.topic}:0,7", f"{tp.topic}-7", 1), ("a b", "a b", 2)):
        code, out, err = reset(run, members, "--topic", topic, "--to-latest")
        assert (code, out) == (expected, "")
        assert named in err


def test_a_login_before_a_broker_and_an_escape_in_a_property_are_not_printed(
    run: Run, members: Group, tmp_path: Path
) -> None:
    config = tmp_path / "client.properties"
    config.write_text("re\\u001b[31mtrys=1\nsasl.oauthbearer.x=1\n")
    place = ("reset-offsets", members.name, "--all-topics", "--to-earliest", "--redis", members.redis_url)
    code, _, err = run(*place, "--bootstrap-server", "u:hunter2@host:9092")
    assert (code, "hunter2" in err, "Remedy: give host:port" in err) == (2, False, True)
    code, _, err = run(*place, "--bootstrap-server", "host:9092", "--command-config", str(config))
    assert code == 2
    assert err.startswith("warning: there is no Kafka property 're\\x1b[31mtrys': ignored\nINVALID_OPTION: ")
    assert "option kafka.sasl.oauthbearer.x is not supported" in err


def test_the_command_config_is_read_as_kafkas_own_tools_read_it(
    run: Run, members: Group, tp: TopicPartition, secure_listener: SecureListener, tmp_path: Path
) -> None:
    run_query(members, subscribed(tp))
    config = tmp_path / "client.properties"
    config.write_text(
        f"""# as kafka-consumer-groups --command-config takes it
        security.protocol = SASL_SSL
        sasl.mechanism: SCRAM-SHA-512
        sasl.jaas.config = org.apache.kafka.common.security.scram.ScramLoginModule required \\
            username="{secure_listener.user}" password="{secure_listener.password}";
        ssl.truststore.type=PEM
        ssl.truststore.location={secure_listener.authority}
        retrys=3
        """
    )
    arguments = ["--redis", members.redis_url, "--bootstrap-server", secure_listener.bootstrap, "--all-topics"]
    code, out, err = run(
        "reset-offsets", members.name, *arguments, "--to-earliest", "--command-config", str(config), "--execute"
    )
    assert (code, members.state.stable) == (0, {tp: 0}), err
    assert err == "warning: there is no Kafka property retrys: ignored\n"
    assert out.splitlines()[1].split() == [tp.topic, "0", "5", "0", "-5"]
