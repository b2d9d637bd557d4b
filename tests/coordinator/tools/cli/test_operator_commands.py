"""An operator deletes a group and sets its policies from the command line, on a real broker and a real Redis."""

import json
import re
import shlex
from collections.abc import Iterator, Mapping
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

import pytest

import kafka_groups
from command_runs import Run
from coordinator.errors import GroupBusyError, KafkaUnavailableError
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GROUPS, GroupKeys
from coordinator.tools.operations.operations import Operator
from coordinator.values.offset_spec import Earliest
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition
from documented import commands
from group_services import Group, batch, read, records, subscribed
from group_services import run as run_query
from kafka_logs import Through, kafka_log
from streams import keyed
from topics import Kafka


@pytest.fixture
def cluster_policies(kafka: Kafka) -> Iterator[None]:
    """Policies of the cluster that a test sets end with it: other tests use the same broker."""
    yield
    with closing(kafka_log(kafka.bootstrap)) as log:
        log.set_cluster_policies(dict.fromkeys(log.cluster_policies()[1], ""))


def delete(run: Run, members: Group, *arguments: str) -> tuple[object, str, str]:
    place = ("--redis", members.redis_url, "--bootstrap-server", members.kafka.bootstrap)
    return run("delete", members.name, *place, *arguments)


def test_a_deleted_group_leaves_nothing_and_its_name_begins_anew(run: Run, members: Group, tp: TopicPartition) -> None:
    run_query(members, subscribed(tp))
    keys = members.keys

    code, out, _ = delete(run, members, "--json")
    assert (code, json.loads(out)) == (0, {"keys": len(keys), "mirrored": [f"{tp.topic}-0"], "executed": False})
    assert members.keys == keys

    code, out, _ = delete(run, members, "--execute", "--json")
    assert (code, json.loads(out)) == (0, {"keys": len(keys), "mirrored": [f"{tp.topic}-0"], "executed": True})
    assert members.keys == []
    assert not members.redis.sismember(GROUPS, members.name)
    assert kafka_groups.committed(members.kafka.bootstrap, members.name, tp.topic) == {}

    assert records(run_query(members, subscribed(tp))) == read(tp, 0, 5)
    assert members.events[0] == "found", "no mirror is left that would make it a loss of state"


def test_a_group_of_which_a_field_is_damaged_can_be_deleted_but_not_one_of_a_newer_version(
    run: Run, members: Group, tp: TopicPartition
) -> None:
    run_query(members, subscribed(tp))
    meta = GroupKeys(members.name).meta
    members.redis.hset(meta, "schema", "2")
    code, _, err = delete(run, members, "--execute")
    assert (code, err.startswith("STATE_FORMAT")) == (1, True)
    assert kafka_groups.committed(members.kafka.bootstrap, members.name, tp.topic) == {0: 5}
    members.redis.hset(meta, mapping={"schema": "1", "generation": "first"})
    assert delete(run, members, "--execute")[0] == 0
    assert members.keys == []


def test_a_delete_keeps_positions_that_a_plain_consumer_committed_to_the_kafka_group(
    run: Run, members: Group, tp: TopicPartition
) -> None:
    other = members.kafka.create_topic("plain")
    kafka_groups.commit(members.kafka.bootstrap, members.name, other, {0: 0})
    run_query(members, subscribed(tp))
    assert delete(run, members, "--execute")[0] == 0
    assert kafka_groups.committed(members.kafka.bootstrap, members.name, tp.topic) == {}
    assert kafka_groups.committed(members.kafka.bootstrap, members.name, other) == {0: 0}


def test_a_mirror_without_redis_can_be_deleted_and_then_there_is_no_such_group(
    run: Run, members: Group, tp: TopicPartition
) -> None:
    run_query(members, subscribed(tp))
    members.lose_everything()
    gone = "Deleted 0 keys in Redis, and the offsets of 1 partition in Kafka.\n"
    assert delete(run, members, "--execute")[:2] == (0, gone)
    code, _, err = delete(run, members)
    assert (code, err.startswith("UNKNOWN_GROUP")) == (1, True)


@pytest.mark.parametrize("execute", [[], ["--execute"]], ids=["dry run", "executed"])
def test_a_group_is_not_deleted_while_a_member_lives(
    run: Run, members: Group, tp: TopicPartition, execute: list[str]
) -> None:
    service = members.started(subscribed(tp), session_ms=60_000)
    batch(service, StreamOffset(members.name))
    code, out, err = delete(run, members, *execute)
    assert (code, out, err.startswith("GROUP_BUSY")) == (1, "", True)
    assert members.state.stable == {tp: 0}
    assert kafka_groups.committed(members.kafka.bootstrap, members.name, tp.topic) == {0: 0}


VERBS = {
    "describe": (),
    "gaps": (),
    "owner": ("orders", "key"),
    "events": (),
    "top": ("--once",),
    "stuck": (),
    "release": ("--all", "--reason", "test"),
    "reset-offsets": ("--all-topics", "--to-latest"),
    "delete": (),
    "backup": (),
}


@pytest.mark.parametrize(("verb", "words"), VERBS.items(), ids=VERBS)
def test_an_unknown_group_is_a_named_error_of_every_verb(
    run: Run, members: Group, verb: str, words: tuple[str, ...]
) -> None:
    needs_kafka = ("--bootstrap-server", members.kafka.bootstrap) if verb in {"reset-offsets", "delete"} else ()
    code, out, err = run(verb, members.name, *words, "--redis", members.redis_url, *needs_kafka)
    assert (code, out, err.startswith("UNKNOWN_GROUP: ")) == (1, "", True)
    assert members.keys == []


@dataclass
class MirrorsOnce(Through):
    """A Kafka whose groups take one commit, and do not answer after it."""

    commits: int = 0

    def commit_group_offsets(
        self, group: str, offsets: Mapping[TopicPartition, tuple[int, str]], *, patient: bool = True
    ) -> bool:
        self.commits += 1
        if self.commits > 1:
            raise KafkaUnavailableError("no broker answered")
        return super().commit_group_offsets(group, offsets)


def test_a_refused_reset_names_its_reason_although_kafka_fails_meanwhile(
    members: Group, tp: TopicPartition, caplog: pytest.LogCaptureFixture
) -> None:
    end = run_query(members, subscribed(tp))
    operator = Operator(members.client, MirrorsOnce(members.log()), members.name)
    planned = operator.plan_reset(None, Earliest())
    members.kafka.produce(tp.topic, keyed(1))
    batch(members.service(subscribed(tp), session_ms=60_000), end)
    with pytest.raises(GroupBusyError):
        operator.reset(planned)
    assert "no broker answered" in caplog.text


DRY = "Nothing was changed. Add --execute to make the change.\n"
PAGES = ("docs/operations.md", "docs/ordering.md", "docs/failing-records.md", "docs/troubleshooting.md")


def _what_it_leaves(command: str) -> int:
    """First what leaves the group as it is; then what makes its members recover, then what leaves nothing."""
    return 2 if " delete " in command else 1 if " restore " in command else 0


@pytest.mark.usefixtures("cluster_policies")
def test_the_commands_of_the_docs_run_without_an_error(
    run: Run, members: Group, tp: TopicPartition, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("COOP_REDIS", members.redis_url)
    monkeypatch.setenv("COOP_KAFKA", members.kafka.bootstrap)
    run_query(members, subscribed(tp))
    found = {command for page in PAGES for command in commands(page) if command.startswith("coop-kafka ")}
    lines = sorted(found, key=_what_it_leaves)
    assert len(lines) >= 20
    members.redis.hset(
        GroupKeys(members.name).strikes, f"{tp.topic} 0 {WHOLE}", "parked 2 0-1 1 m-1"
    )  # so that one is parked
    here = {
        "orders-dead": members.kafka.create_topic("orders-dead"),
        "redis://localhost:6379/0": members.redis_url,
        "localhost:9092": members.kafka.bootstrap,
        "orders-to-lake": members.name,
        "orders-to-parked": members.name,
        "orders-to-letters": members.name,
    }
    for line in lines:
        command, _, file = line.partition(" > ")
        words = [here.get(word, word) for word in shlex.split(command.removeprefix("coop-kafka "))]
        words = [re.sub(r"^orders(?=$|:)|(?<=:)orders(?==)", tp.topic, word) for word in words]
        code, out, err = run(*words, *(["--once"] if words[0] == "top" else []))
        complaints = [each for each in err.splitlines() if "warning: group" not in each or members.name in each]
        assert (code, complaints) == (3 if words[0] == "check" else 0, []), line  # no member is at work
        assert out
        if file:
            Path(file).write_text(out)
    assert members.keys == [], "the last of them deletes the group"


def test_a_policy_holds_in_all_replica_sets(run: Run, members: Group, tp: TopicPartition) -> None:
    second = Group(members.kafka, members.redis_url, f"{members.name}@2")
    with closing(second):
        for each in (members, second):
            each.service(subscribed(tp)).first_positions()
        place = ("--redis", members.redis_url, "--set", "accept.individual.commit=false")
        assert run("policy", members.name, *place, "--execute")[0] == 0
        assert not second.policies.policy().accept_individual_commit


def test_policies_are_shown_and_set(run: Run, redis_url: str, group: str) -> None:
    place = (group, "--redis", redis_url)
    code, out, err = run("policy", *place)
    assert (code, out) == (0, "accept.individual.commit=true\n")
    assert err.startswith(f"warning: group {group!r} does not exist.")
    off = ("--set", "accept.range.fetch:orders=false", "--set", "accept.individual.commit=false")
    would = "accept.individual.commit=false (now true)\naccept.range.fetch:orders=false (now true)\n"
    assert run("policy", *place, *off)[:2] == (0, would + DRY)
    fields = {"accept.individual.commit": False, "accept.range.fetch:orders": False}
    for executed in False, True:
        code, out, _ = run("policy", *place, *off, "--json", *("--execute",) * executed)
        assert (code, json.loads(out)) == (0, {"executed": executed, "policy": fields})
        changed = run("policy", *place)[1] != "accept.individual.commit=true\n"
        assert changed is executed
    back = ("--set", "accept.range.fetch:orders=", "--set", "accept.individual.commit=")
    would = "accept.individual.commit=true (now false)\naccept.range.fetch:orders=true (now false)\n"
    assert run("policy", *place, *back)[1] == would + DRY
    assert run("policy", *place, *back, "--execute")[1] == "accept.individual.commit=true\n"


def test_a_policy_of_a_group_or_topic_that_is_not_there_is_set_with_a_warning(
    run: Run, members: Group, tp: TopicPartition
) -> None:
    place = ("policy", members.name, "--redis", members.redis_url, "--execute", "--set")
    code, out, err = run(*place, f"accept.range.fetch:{tp.topic}=false")
    assert (code, out.count("\n")) == (0, 2)
    assert err.startswith(f"warning: group {members.name!r} does not exist. Redis keeps its policies for seven days")
    members.service(subscribed(tp)).first_positions()
    assert "does not read topic 'ordres'" in run(*place, "accept.range.fetch:ordres=false")[2]
    assert run(*place, "accept.range.fetch:ordres=")[2] == "", "it is removed"
    assert run(*place, f"accept.range.fetch:{tp.topic}=false")[2] == ""
    assert run(*place, "accept.individual.commit=false")[2] == ""


def test_a_policy_that_there_is_not_is_refused(run: Run, redis_url: str, group: str) -> None:
    for flags in (), ("--execute",):
        code, _, err = run("policy", group, "--redis", redis_url, "--set", "accept.individual.comit=false", *flags)
        assert (code, err.startswith("UNKNOWN_OPTION")) == (2, True)
        assert "did you mean accept.individual.commit" in err
    assert run("policy", group, "--redis", redis_url, "--set", "accept.individual.commit")[0] == 2


def test_a_policy_of_one_replica_set_is_refused(run: Run, members: Group, tp: TopicPartition) -> None:
    members.service(subscribed(tp)).first_positions()
    place = (f"{members.name}@2", "--redis", members.redis_url)
    code, _, err = run("policy", *place, "--set", "accept.individual.commit=false")
    assert code == 2
    assert f"is a replica set of {members.name!r}; a policy holds in all sets" in " ".join(err.split())
    assert members.policies.policy().accept_individual_commit


@pytest.mark.usefixtures("cluster_policies")
def test_a_policy_of_a_topic_that_kafka_does_not_know_is_set_with_a_warning(run: Run, kafka: Kafka) -> None:
    place = ("--topic", "ordres", "--bootstrap-server", kafka.bootstrap)
    code, _, err = run("policy", *place, "--set", "accept.range.fetch=false", "--execute")
    assert (code, err.startswith("warning: Kafka has no topic 'ordres'")) == (0, True)


@pytest.mark.usefixtures("cluster_policies")
def test_policies_of_the_cluster_and_of_a_topic_in_all_groups_are_shown_and_set(run: Run, kafka: Kafka) -> None:
    topic, at = kafka.create_topic("policed"), ("--bootstrap-server", kafka.bootstrap)
    off = "accept.range.fetch=false"
    assert run("policy", "--topic", topic, *at) == (0, "accept.range.fetch=true\n", "")
    assert run("policy", "--topic", topic, *at, "--set", off) == (0, f"{off} (now true)\n{DRY}", "")
    assert run("policy", "--topic", topic, *at) == (0, "accept.range.fetch=true\n", "")
    assert run("policy", "--topic", topic, *at, "--set", off, "--execute") == (0, f"{off}\n", "")
    code, out, _ = run("policy", "--cluster", *at, "--json")
    assert code == 0
    assert json.loads(out)["policy"][f"accept.range.fetch:{topic}"] is False
    assert run("policy", "--cluster", *at, "--set", "accept.individual.commit=false", "--execute")[0] == 0
    assert run("policy", "--cluster", *at)[1].startswith("accept.individual.commit=false\n")
    back = run("policy", "--topic", topic, *at, "--set", "accept.range.fetch=", "--execute")
    assert back[1] == "accept.range.fetch=true\n"
