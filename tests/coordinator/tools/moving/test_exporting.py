"""`coop-kafka export`: plain consumers begin at a group's stable offsets."""

import json

import pytest

import kafka_groups
from command_runs import Run
from coordinator.values.subscription import Topics
from group_services import Group
from group_services import run as read_all
from streams import keyed
from topics import Kafka


@pytest.fixture
def place(kafka: Kafka, redis_url: str) -> tuple[str, ...]:
    return "--redis", redis_url, "--bootstrap-server", kafka.bootstrap


def test_plain_consumers_begin_at_the_stable_offsets(
    run: Run, kafka: Kafka, place: tuple[str, ...], members: Group, group: str
) -> None:
    topic, plain = kafka.create_topic("back"), f"{group}-plain"
    kafka.produce(topic, keyed(20))
    read_all(members, Topics((topic,)))
    code, out, _ = run("export", group, "--to", plain, *place)
    assert (code, "Nothing was changed" in out) == (0, True)
    code, out, err = run("export", group, "--to", plain, *place, "--execute", "--json")
    assert (code, err) == (0, "")
    assert json.loads(out) == {
        "executed": True,
        "partitions": [{"topic": topic, "partition": 0, "offset": 20, "reach": 20}],
    }
    assert kafka_groups.committed(kafka.bootstrap, plain, topic) == {0: 20}
    code, _, err = run("export", group, "--to", group, *place)
    assert (code, "has the stable offsets" in err) == (2, True)


def test_an_unknown_group_has_nothing_to_export(run: Run, place: tuple[str, ...], group: str) -> None:
    code, _, err = run("export", group, "--to", "plain", *place)
    assert (code, "UNKNOWN_GROUP" in err) == (1, True)
