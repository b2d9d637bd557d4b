"""The command line against a real Redis: what it prints, and how it ends when something is wrong."""

import io
import json
import secrets
import subprocess
import sys
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

import pytest
import redis
from rich.console import Console

from coordinator import cli
from coordinator.keys import GroupKeys
from coordinator.ranges import WHOLE
from coordinator.redis_calls import Caller
from coordinator.redis_client import RedisClient
from coordinator.redis_membership import Joining
from coordinator.redis_store import RedisStore
from coordinator.subscription import Topic, TopicPartition
from coordinator.tables import print_group
from coordinator.views import GroupView, LaneView, MemberView, PartitionView

ROOT = Path(__file__).parents[1]
FIRST, SECOND = TopicPartition("orders", 0), TopicPartition("orders", 1)
WHOLE_TEXT = "0000000000000000-7fffffffffffffff"


@pytest.fixture
def known_group(redis_url: str) -> Iterator[str]:
    """A group with one member that owns two partitions; a name that a terminal or a template could misread."""
    group = f"my [red]group[/] {{1}} {secrets.token_hex(4)}"
    with closing(RedisClient(redis_url)) as client:
        store = RedisStore(client, group, session_ms=60_000, longest_ms=60_000, retention_ms=60_000)
        store.found(Caller(), "aa", {"orders": Topic("orders", "id-1", (0, 1))}, {FIRST: 5, SECOND: 7})
        seen = store.join(Caller("m-1", "i1"), "", Joining({"host": "h1", "pid": "12", "capacity": "4"})).seen
        store.acquire(Caller("m-1", "i1", seen.nonce, str(seen.seq)), {FIRST: (WHOLE,), SECOND: (WHOLE,)})
        store.report_ends({FIRST: 50})
        yield group


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> "Run":
    monkeypatch.delenv("COOP_REDIS", raising=False)
    return Run(monkeypatch, capsys)


class Run:
    """Calls the command; gives exit code, stdout and stderr."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]) -> None:
        self._monkeypatch, self._capsys = monkeypatch, capsys

    def __call__(self, *arguments: str) -> tuple[object, str, str]:
        self._monkeypatch.setattr(sys, "argv", ["coop-kafka", *arguments])
        with pytest.raises(SystemExit) as ended:
            cli.app()
        return ended.value.code, *self._capsys.readouterr()


def test_describe_prints_a_table_for_people(run: Run, redis_url: str, known_group: str) -> None:
    code, out, err = run("describe", known_group, "--redis", redis_url)

    rows = [line.split() for line in out.splitlines()]
    assert (code, err) == (0, "")
    assert out.startswith(f"Group {known_group!r}: Stable\n")
    assert ["orders", "0", "5", "50", "45", WHOLE_TEXT, "5", "45", "m-1"] in rows
    assert ["orders", "1", "7", "-", "-", WHOLE_TEXT, "7", "-", "m-1"] in rows
    assert ["m-1", "h1", "12", "4"] in [row[:4] for row in rows]


def test_describe_prints_json_for_programs(
    run: Run, redis_url: str, known_group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("COOP_REDIS", redis_url)
    code, out, _ = run("describe", known_group, "--json")

    told = json.loads(out)
    assert code == 0
    assert told["group"] == known_group
    assert [member["id"] for member in told["members"]] == ["m-1"]
    assert told["partitions"][0] == {
        "topic": "orders",
        "partition": 0,
        "stable": 5,
        "end": 50,
        "lag": 45,
        "lanes": [{"hashes": WHOLE_TEXT, "position": 5, "lag": 45, "epoch": "aa.1", "member": "m-1"}],
    }


def test_groups_are_listed_for_people_and_programs(run: Run, redis_url: str, known_group: str) -> None:
    code, out, _ = run("groups", "list", "--redis", redis_url)
    assert (code, known_group in out.splitlines()) == (0, True)
    code, out, _ = run("groups", "list", "--json", "--redis", redis_url)
    assert (code, known_group in json.loads(out)) == (0, True)


def test_a_group_that_has_expired_is_not_listed(run: Run, redis_url: str, known_group: str) -> None:
    with closing(redis.Redis.from_url(redis_url)) as client:
        client.delete(GroupKeys(known_group).meta)
    assert known_group not in run("groups", "list", "--redis", redis_url)[1].splitlines()


def test_an_unknown_group_is_one_line_on_stderr(run: Run, redis_url: str) -> None:
    code, out, err = run("describe", "no\nsuch group", "--redis", redis_url)

    assert (code, out) == (1, "")
    assert err.startswith("UNKNOWN_GROUP: ")
    assert "Remedy: " in err
    assert err.count("\n") == 1


def test_a_redis_that_is_not_there_is_one_line_without_the_password(run: Run) -> None:
    code, out, err = run("describe", "g", "--redis", "redis://ann:pa55word@127.0.0.1:1/0")

    assert (code, out) == (1, "")
    assert err.startswith("REDIS_UNAVAILABLE: no answer from the Redis at redis://127.0.0.1:1/0")
    assert "pa55word" not in err
    assert err.count("\n") == 1


def test_a_url_that_cannot_be_parsed_is_not_shown(run: Run) -> None:
    code, _, err = run("describe", "g", "--redis", "redis://ann:pa[55word@h:xx/0")

    assert code == 1
    assert err.startswith("INVALID_OPTION: ")
    assert "55word" not in err


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        pytest.param(["describe", "g"], "COOP_REDIS", id="no Redis is named"),
        pytest.param(["describe", "--redis", "redis://h"], "GROUP", id="no group is named"),
        pytest.param(["descrieb"], "No such command", id="no such verb"),
        pytest.param(["describe", "g", "--yaml"], "No such option", id="no such option"),
    ],
)
def test_wrong_usage_ends_with_2(run: Run, arguments: list[str], told: str) -> None:
    code, out, err = run(*arguments)

    assert (code, out) == (2, "")
    assert told in err


def test_without_the_extra_it_says_what_to_install(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "typer", None)
    monkeypatch.delitem(sys.modules, "coordinator.commands", raising=False)

    code, _, err = run("describe", "g")

    assert code == 1
    assert err.startswith("ENVIRONMENT_MISMATCH: the command coop-kafka needs the package typer")
    assert "coop-kafka[cli]" in err


def test_it_loads_neither_spark_nor_kafka() -> None:
    loaded = "import coordinator.commands, sys; print(*{m.split('.')[0] for m in sys.modules} & {'pyspark', 'kafka'})"
    done = subprocess.run([sys.executable, "-c", loaded], cwd=ROOT, capture_output=True, text=True, check=True)

    assert done.stdout.split() == []


def test_on_a_narrow_terminal_a_hash_range_breaks_at_its_dash() -> None:
    lane = LaneView(WHOLE_TEXT, 5, None, None, None)
    group = GroupView("g", "Empty", (MemberView("m-1", 0, {}),), (PartitionView("t", 0, 5, None, None, (lane,)),))
    console = Console(file=io.StringIO(), width=80)

    print_group(group, console)

    assert isinstance(console.file, io.StringIO)
    printed = console.file.getvalue()
    assert "0000000000000000- " in printed
    assert "7fffffffffffffff" in printed.splitlines()[-1]
    assert "nobody" in printed
    assert "ended" in printed


def test_a_group_without_positions_says_so() -> None:
    console = Console(file=io.StringIO(), width=80)

    print_group(GroupView("g", "Empty", (), ()), console)

    assert isinstance(console.file, io.StringIO)
    assert console.file.getvalue() == "Group 'g': Empty\nNo positions yet.\n"
