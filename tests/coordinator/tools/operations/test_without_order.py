"""The verbs of `coop-kafka` on a group without order: its slices are shown, and never outlive a reset."""

import json
from dataclasses import replace
from pathlib import Path

import pytest

from command_runs import Run
from coordinator.assignment.settings import GroupSettings
from coordinator.errors import IndividualCommitNotAllowedError
from coordinator.member.limits import Limits
from coordinator.member.service import Service
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.keys import GroupKeys
from coordinator.tools.operations.copies import GroupCopy
from coordinator.values.subscription import TopicPartition
from group_services import LONG_MS, Group, batches, read, records, slices_read, subscribed
from resets import reset

TWO = Limits(max_offsets=2)


def member(members: Group, tp: TopicPartition, session_ms: int = LONG_MS) -> Service:
    settings = replace(GroupSettings(members.name, capacity=2, session_ms=session_ms), ordering="none", demanding=True)
    return members.started(subscribed(tp), settings=settings)


def two_records(members: Group, service: Service, start: StreamOffset | None = None) -> StreamOffset:
    """The end of the next batch, authorised."""
    end = service.next_offset(start or StreamOffset(members.name), TWO)
    assert end is not None
    service.tasks(end)
    return end


def handed(members: Group, tp: TopicPartition) -> list[str]:
    return sorted(map(str, members.redis.hkeys(GroupKeys(members.name).handed(tp))))


def killed_in_a_batch(members: Group, tp: TopicPartition) -> StreamOffset:
    """The end of the batch of the records 2 and 3: the records 0 and 1 are committed, and the lease is over."""
    killed = member(members, tp)
    end = two_records(members, killed, two_records(members, killed))
    members.lose(killed)
    return end


def table(out: str) -> list[list[str]]:
    """The words of each line; without the last one, the age of the log ends."""
    *rows, age = out.splitlines()
    assert age.startswith("End offsets are up to ")
    return [line.split() for line in rows]


def test_describe_shows_who_reads_which_offsets(run: Run, members: Group, tp: TopicPartition) -> None:
    one, two = member(members, tp, 60_000), member(members, tp, 60_000)
    two_records(members, one)
    two_records(members, two)
    code, out, err = run("describe", members.name, "--redis", members.redis_url)
    rows = table(out)
    assert (code, err, out.splitlines()[0]) == (0, "", f"Group {members.name!r}: Stable, without order")
    header, first, second = rows[-3:]
    assert header[-4:] == ["OFFSETS", "MEMBER", "SINCE", "S"]
    assert first[:-1] == [tp.topic, "0", "0", "5", "5", "0", "0-1", one.member]
    assert second[:-1] == ["2-3", two.member]
    assert {first[-1], second[-1]} <= {str(s) for s in range(60)}
    (partition,) = json.loads(run("describe", members.name, "--json", "--redis", members.redis_url)[1])["partitions"]
    assert [(s["offsets"], s["member"]) for s in partition["slices"]] == [
        ([[0, 1]], one.member),
        ([[2, 3]], two.member),
    ]


def test_describe_of_an_idle_group_shows_no_offsets(run: Run, members: Group, tp: TopicPartition) -> None:
    one = member(members, tp)
    list(batches(one, StreamOffset(members.name)))
    one.leave()
    _, out, _ = run("describe", members.name, "--redis", members.redis_url)
    assert out.splitlines()[0] == f"Group {members.name!r}: Empty, without order"
    assert table(out)[-1] == [tp.topic, "0", "5", "5", "0", "0", "-", "-", "-"]


@pytest.mark.parametrize("verb", [("gaps",), ("top", "--once"), ("stuck",), ("policy",), ("events",)])
def test_every_other_view_works(run: Run, members: Group, tp: TopicPartition, verb: tuple[str, ...]) -> None:
    one, two = member(members, tp), member(members, tp)
    two_records(members, one)
    two_records(members, two, two_records(members, two))
    code, out, err = run(verb[0], members.name, *verb[1:], "--redis", members.redis_url)
    assert (code, err) == (0, "")
    assert verb != ("gaps",) or "0-1" in out


def test_no_member_owns_a_key(run: Run, members: Group, tp: TopicPartition) -> None:
    two_records(members, member(members, tp))
    code, out, _ = run("owner", members.name, tp.topic, "a", "--redis", members.redis_url)
    assert (code, "nobody" in out) == (0, True)


@pytest.mark.parametrize("target", [0, 3, 5], ids=["back", "into the slice", "forward"])
def test_a_reset_makes_the_slices_of_a_dead_member_void(
    run: Run, members: Group, tp: TopicPartition, target: int
) -> None:
    end = killed_in_a_batch(members, tp)
    assert handed(members, tp) == ["2-3"]
    code, _, err = reset(run, members, "--all-topics", "--to-offset", str(target), "--execute")
    assert (code, err) == (0, "")
    assert table(run("describe", members.name, "--redis", members.redis_url)[1])[-1][-3] == "-"
    again = member(members, tp)
    assert slices_read(again, end) == ()
    assert records(*batches(again, end)) == read(tp, target, 5)
    assert members.state.stable == {tp: 5}
    again.leave()
    assert handed(members, tp) == []


def test_a_reset_and_a_delete_are_refused_while_a_member_lives(run: Run, members: Group, tp: TopicPartition) -> None:
    end = two_records(members, one := member(members, tp, 60_000))
    place = ("--redis", members.redis_url, "--bootstrap-server", members.kafka.bootstrap)
    code, _, err = reset(run, members, "--all-topics", "--to-offset", "3", "--execute")
    assert (code, err.startswith("GROUP_BUSY")) == (1, True)
    code, _, err = run("delete", members.name, *place, "--execute")
    assert (code, err.startswith("GROUP_BUSY")) == (1, True)
    assert records(*batches(one, end)) == read(tp, 2, 5)


def test_a_deleted_group_leaves_no_slices_and_begins_anew_with_any_ordering(
    run: Run, members: Group, tp: TopicPartition
) -> None:
    killed_in_a_batch(members, tp)
    place = ("--redis", members.redis_url, "--bootstrap-server", members.kafka.bootstrap)
    code, out, _ = run("delete", members.name, *place, "--execute", "--json")
    assert (code, json.loads(out)["executed"], members.keys) == (0, True, [])
    by_key = members.started(subscribed(tp))
    assert records(*batches(by_key, StreamOffset(members.name))) == read(tp, 0, 5)


def test_a_copy_has_no_slices_and_keeps_the_ordering(
    run: Run, members: Group, tp: TopicPartition, tmp_path: Path
) -> None:
    end = killed_in_a_batch(members, tp)
    code, out, _ = run("backup", members.name, "--redis", members.redis_url)
    (tmp_path / "copy.json").write_text(out)
    copy = GroupCopy.parse(out, members.name)
    assert (code, copy.keys["meta"]["ordering"]) == (0, "none")
    assert not [name for name in copy.keys if name.startswith("handed")]
    code, _, err = run("restore", members.name, str(tmp_path / "copy.json"), "--redis", members.redis_url, "--execute")
    assert (code, err, handed(members, tp)) == (0, "", [])
    members.clock.at_wait = members.end_recovery
    again = member(members, tp)
    assert slices_read(again, end) == ()
    assert records(*batches(again, end)) == read(tp, 2, 5)
    assert members.state.stable == {tp: 5}


def test_slices_of_before_a_loss_of_state_are_void(members: Group, tp: TopicPartition) -> None:
    end = killed_in_a_batch(members, tp)
    members.restart_redis()
    again = member(members, tp)
    assert slices_read(again, end) == ()
    assert records(*batches(again, end)) == read(tp, 2, 5)
    assert members.state.stable == {tp: 5}


def test_a_policy_that_forbids_shared_partitions_refuses_the_next_query(
    run: Run, members: Group, tp: TopicPartition
) -> None:
    killed_in_a_batch(members, tp)
    forbid = ("--set", "accept.individual.commit=false")
    assert run("policy", members.name, *forbid, "--execute", "--redis", members.redis_url)[0] == 0
    with pytest.raises(IndividualCommitNotAllowedError, match="ordering=none"):
        member(members, tp).check_policies()
