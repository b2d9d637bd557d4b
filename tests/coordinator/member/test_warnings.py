"""Waits and ends that are easily missed: each writes one WARN with its remedy to Spark's output."""

import uuid
from contextlib import closing

import pytest

from command_runs import Run
from coordinator.assignment.settings import GroupSettings
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.values.subscription import Pattern, TopicPartition
from group_services import SHORT_MS, UNLIMITED, Group, batch, subscribed
from kafka_logs import kafka_log
from topics import Kafka


def warned(caplog: pytest.LogCaptureFixture, words: str) -> list[str]:
    return [r.getMessage() for r in caplog.records if r.levelname == "WARNING" and words in r.getMessage()]


def test_a_run_that_leaves_parked_lanes_names_them(
    members: Group, tp: TopicPartition, caplog: pytest.LogCaptureFixture
) -> None:
    service = members.started(subscribed(tp))
    hashes = "0000000000000000-1fffffffffffffff"
    members.redis.hset(GroupKeys(members.name).strikes, f"{tp.topic} 0 {hashes}", "parked 2 3-4 1 m-1")
    batch(service, StreamOffset(members.name))
    service.leave()
    (line,) = warned(caplog, "parked lanes stay unread")
    assert f"1, of them {tp} at offset 3; `coop-kafka stuck {members.name}`" in line


def test_a_batch_beyond_the_longest_is_named_once_while_it_runs(
    members: Group, tp: TopicPartition, caplog: pytest.LogCaptureFixture
) -> None:
    service = members.started(subscribed(tp), settings=GroupSettings(members.name, session_ms=5_000, longest_ms=4_000))
    end = service.next_offset(StreamOffset(members.name), UNLIMITED)
    assert end is not None
    service.tasks(end)
    service.heartbeat()
    assert warned(caplog, "longestBatch") == []
    members.clock.skip(4_001)
    for _ in range(3):
        service.heartbeat()
    (line,) = warned(caplog, "longestBatch")
    assert "(4000 ms)" in line
    assert "lower batchTimeBudget" in line


def test_a_pattern_that_matches_nothing_is_named_once(kafka: Kafka, caplog: pytest.LogCaptureFixture) -> None:
    pattern = Pattern(f"nobody-{uuid.uuid4().hex}")
    with closing(kafka_log(kafka.bootstrap)) as log:
        for _ in range(3):
            assert log.topics(pattern) == {}
    (line,) = warned(caplog, "matches no topic")
    assert pattern.regex in line


@pytest.mark.usefixtures("short_sessions")
def test_after_a_copy_was_loaded_the_log_names_the_copy_and_how_long_it_takes(
    members: Group,
    tp: TopicPartition,
    run: Run,
    caplog: pytest.LogCaptureFixture,
    tmp_path_factory: pytest.TempPathFactory,
) -> None:
    end = batch(service := members.service(subscribed(tp)), _founded(members, tp))
    assert service.next_offset(end, UNLIMITED) is None
    service.leave()
    place = ("--redis", members.redis_url)
    copy = tmp_path_factory.mktemp("copies") / "copy.json"
    copy.write_text(run("backup", members.name, *place)[1])
    code, _, err = run("restore", members.name, str(copy), "--execute", *place)
    assert code == 0, err
    members.service(subscribed(tp)).next_offset(end, UNLIMITED)
    assert len(warned(caplog, "an operator has loaded a copy of the group; positions are recovered")) == 1
    assert len(warned(caplog, f"no batch is planned for up to sessionTimeout ({SHORT_MS} ms)")) == 1
    assert warned(caplog, "another Redis server") == []


def _founded(members: Group, tp: TopicPartition) -> StreamOffset:
    members.service(subscribed(tp)).first_positions()
    return StreamOffset(members.name)
