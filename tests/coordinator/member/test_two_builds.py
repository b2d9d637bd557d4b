"""Two builds whose schema numbers differ meet in one group: the one that cannot read the other's state says so.

The other build is a copy of the packages with the next number, in a process of its own.
"""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from broker_jars import ROOT
from coordinator.errors import StateFormatError
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.group_state import SCHEMA
from coordinator.values.subscription import TopicPartition
from group_services import Group, batches, read, records, subscribed
from streams import keyed

NEXT = "2"
REDIS = ("redis/group_state.py", 'SCHEMA = "{}"'), ("redis/lua/shared/prelude.lua", "local SCHEMA = '{}'")
MIRROR = ("progress/mirror.py", 'SCHEMA = "{}"')
MEMBER = """
import sys
from coordinator.errors import CoopKafkaError
from coordinator.progress.stream_offset import StreamOffset
from coordinator.values.subscription import TopicPartition
from group_services import Group, batches, records, subscribed
from topics import Kafka

kafka, redis, name, topic = sys.argv[1:]
group = Group(Kafka(kafka), redis, name)
try:
    service = group.aiming(subscribed(TopicPartition(topic, 0)))
    print(len([*batches(service, StreamOffset(name))]), "batches")
    service.leave()
except CoopKafkaError as error:
    print(error)
finally:
    group.close()
"""


@pytest.fixture(params=[REDIS, (MIRROR,), (*REDIS, MIRROR)], ids=["Redis", "mirror", "both"])
def newer(tmp_path: Path, request: pytest.FixtureRequest) -> Path:
    """The folder of the next build, with other numbers of some forms."""
    for package in ("coordinator", "spark_coop_source"):
        shutil.copytree(ROOT / package, tmp_path / package, ignore=shutil.ignore_patterns("__pycache__"))
    for name, number in request.param:
        file = tmp_path / "coordinator" / name
        text = file.read_text()
        assert text.count(number.format(SCHEMA)) == 1, name
        file.write_text(text.replace(number.format(SCHEMA), number.format(NEXT)))
    return tmp_path


def of_next_build(newer: Path, members: Group, tp: TopicPartition) -> str:
    """What a whole life of a member of the next build prints."""
    path = os.pathsep.join(map(str, (newer, ROOT / "tests" / "support", ROOT / "scripts" / "lib")))
    arguments = [members.kafka.bootstrap, members.redis_url, members.name, tp.topic]
    command = [sys.executable, "-B", "-c", MEMBER, *arguments]
    environment = os.environ | {"PYTHONPATH": path, "PYTHONSAFEPATH": "1"}
    ended = subprocess.run(command, env=environment, cwd=newer, capture_output=True, text=True, check=False)
    return ended.stdout + ended.stderr


def test_a_newer_build_is_refused_by_an_older_group_which_goes_on(
    newer: Path, members: Group, tp: TopicPartition
) -> None:
    service = members.aiming(subscribed(tp))
    said = of_next_build(newer, members, tp)
    assert re.search(rf"STATE_FORMAT: .*schema '{SCHEMA}'.*, this coop-kafka reads schema '{NEXT}'", said), said
    ends = [*batches(service, StreamOffset(members.name))]
    assert records(ends[-1]) == read(tp, 0, 5)


def test_an_older_build_is_refused_by_a_newer_group_which_goes_on(
    newer: Path, members: Group, tp: TopicPartition
) -> None:
    assert re.search(r"\d batches", of_next_build(newer, members, tp))
    with pytest.raises(StateFormatError, match=f"schema '{NEXT}'.*, this coop-kafka reads schema '{SCHEMA}'"):
        members.service(subscribed(tp)).first_positions()
    members.kafka.produce(tp.topic, keyed(3))
    assert re.search(r"\d batches", of_next_build(newer, members, tp))
