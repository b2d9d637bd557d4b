"""The mirror as Kafka's own tool shows it: `kafka-consumer-groups --describe`, the Java class itself."""

import os
import subprocess
from pathlib import Path

from broker_jars import BROKER
from coordinator.subscription import TopicPartition
from group_services import Group, run, subscribed
from streams import keyed


def described(bootstrap: str, group: str) -> list[list[str]]:
    """The rows of its table."""
    home = os.environ.get("JAVA_HOME")
    java = str(Path(home, "bin", "java")) if home else "java"
    command = [java, "-cp", str(BROKER.folder / "*"), "org.apache.kafka.tools.consumer.group.ConsumerGroupCommand"]
    command += ["--bootstrap-server", bootstrap, "--describe", "--group", group]
    done = subprocess.run(command, stdin=subprocess.DEVNULL, capture_output=True, text=True, timeout=120, check=True)
    return [line.split() for line in done.stdout.splitlines() if line.startswith(group)]


def test_kafkas_own_tool_shows_the_stable_offset_and_the_lag(members: Group, tp: TopicPartition) -> None:
    run(members, subscribed(tp))
    members.kafka.produce(tp.topic, keyed(3))
    (row,) = described(members.kafka.bootstrap, members.name)
    assert row[:6] == [members.name, tp.topic, "0", "5", "8", "3"]
