"""Rows are acknowledged by their texts, on a real Redis: any order, any member, each call once or twice."""

import re
from typing import Any

import pytest

from acknowledgements import sealed, text_of
from commit_apis import api, ranges, state
from coordinator.commits.commit_api import CommitApi
from coordinator.commits.group_commits import GroupCommits
from coordinator.errors import (
    CommitBeyondReadError,
    CommitError,
    CorruptAcknowledgementError,
    FencedMemberError,
    GroupRecoveringError,
    IndividualCommitNotAllowedError,
    MaxIndividualCommitReachedError,
    StateFormatError,
    UnknownGroupError,
)
from coordinator.progress.stream_offset import Lane, StreamOffset
from coordinator.redis.commits import CommittedRange
from coordinator.redis.keys import GroupKeys
from coordinator.values.ranges import WHOLE, HashRange
from store_world import LOWER, OTHER, SESSION, TP, UPPER, World, lane

ON_EACH_SERVER = True


def batch_of(world: World, *lanes: Lane, member: str = "m-1") -> StreamOffset:
    """The end of a batch of a member that owns these lanes."""
    return StreamOffset(world.group, member, 0, {"orders": "id-1"}, {TP: lanes})


def commits_at(world: World, position: int, most: int = 100) -> GroupCommits:
    api(world, position, max_individual_commits=most).close()
    return GroupCommits.of_group(world.url, world.group)


def taken_over(world: World, hashes: HashRange) -> None:
    """The lease of the member ends, and another one acquires these hashes."""
    world.lapse(10 * SESSION)
    world.store.positions.acquire(world.join("m-2", "i2"), {TP: (hashes,)})


def texts(end: StreamOffset, *offsets: str) -> list[str]:
    return [text_of(end, TP, each) for each in offsets]


@pytest.mark.parametrize("order", [(0, 1, 2), (2, 1, 0), (1, 2, 0)])
def test_records_99_110_and_121_one_by_one_give_stable_122(world: World, order: tuple[int, ...]) -> None:
    batch = batch_of(world, lane("aa.1", 95, 130))
    of_rows = texts(batch, "95-99", "100-110", "111-121")
    with commits_at(world, 95) as commits:
        answers = [commits.acknowledge(of_rows[i]) for i in order]
    assert answers[-1] == {TP: 122}
    assert state(world) == ({str(WHOLE): "122"}, {})


def test_many_rows_of_several_lanes_and_members_are_one_call(world: World) -> None:
    with commits_at(world, 0) as commits:
        taken_over(world, UPPER)
        mine = batch_of(world, lane("aa.1", 0, 9, LOWER))
        other = batch_of(world, lane("aa.2", 0, 9, UPPER), member="m-2")
        of_rows = [text_of(mine, TP, "0-1"), text_of(other, TP, "0-3", UPPER), text_of(mine, TP, "3-3")]
        assert commits.acknowledge(of_rows) == {TP: 2}
        assert state(world) == ({str(LOWER): "2", str(UPPER): "4"}, {str(LOWER): "3-3"})
        assert commits.acknowledge(text_of(mine, TP, "2-2")) == {TP: 4}
        assert commits.acknowledge([]) == {}


def test_a_repeated_acknowledgement_changes_nothing_before_and_after_it_is_below_the_stable_offset(
    world: World,
) -> None:
    batch = batch_of(world, lane("aa.1", 43, 60))
    first, later = texts(batch, "43-44", "46-47")
    with commits_at(world, 43) as commits:
        for expected in (43, 43):
            assert commits.acknowledge(later) == {TP: expected}
        for _ in range(2):
            assert commits.acknowledge(first) == {TP: 45}
        assert commits.acknowledge([first, later]) == {TP: 45}
    assert state(world) == ({str(WHOLE): "45"}, {str(WHOLE): "46-47"})


def test_the_next_life_of_the_member_commits_the_rows_of_the_earlier_one(world: World) -> None:
    of_rows = texts(batch_of(world, lane("aa.1", 43, 60)), "43-43", "44-44")
    with commits_at(world, 43) as commits:
        commits.acknowledge(of_rows[0])
        world.join("m-1", "i2")
        assert commits.acknowledge(of_rows[1]) == {TP: 45}


def test_rows_of_a_lost_lane_are_refused_and_those_of_other_lanes_are_committed(world: World) -> None:
    batch = batch_of(world, lane("aa.1", 43, 60, LOWER), lane("aa.1", 43, 50, UPPER))
    with commits_at(world, 43) as commits:
        taken_over(world, LOWER)
        of_rows = [text_of(batch, TP, "43-44"), text_of(batch, TP, "43-45", UPPER)]
        with pytest.raises(FencedMemberError, match="owns none of these hashes"):
            commits.acknowledge(of_rows)
        assert world.positions() == {str(LOWER): "43", str(UPPER): "46"}


def test_a_row_of_a_lane_that_moved_in_part_is_committed_where_the_member_still_owns_it(world: World) -> None:
    batch = batch_of(world, lane("aa.1", 43, 60))
    with commits_at(world, 43) as commits:
        taken_over(world, UPPER)
        with pytest.raises(FencedMemberError, match=f"no longer owns {UPPER}"):
            commits.acknowledge(texts(batch, "43-44"))
        assert world.positions() == {str(LOWER): "45", str(UPPER): "43"}


def test_a_forged_text_commits_nothing_beyond_the_log_end(world: World) -> None:
    batch = batch_of(world, lane("aa.1", 43, 60))
    with commits_at(world, 43) as commits:
        world.logs_reach(100)
        with pytest.raises(CommitBeyondReadError, match="includes offset 100"):
            commits.acknowledge(texts(batch, "43-100"))
        with pytest.raises(CommitBeyondReadError):
            commits.acknowledge(texts(batch, f"43-{2**63 - 3}"))
    assert state(world) == ({str(WHOLE): "43"}, {})


def test_one_damaged_text_refuses_the_whole_call(world: World) -> None:
    sound = texts(batch_of(world, lane("aa.1", 43, 60)), "43-43")[0]
    with commits_at(world, 43) as commits:
        for damaged in (sound[:-1], sound + "0", sound.replace("/43/", "/40/", 1), "", "1"):
            with pytest.raises(CorruptAcknowledgementError):
                commits.acknowledge([sound, damaged])
        with pytest.raises(CorruptAcknowledgementError, match="a NoneType is not"):
            commits.acknowledge([sound, None])  # type: ignore[list-item]  # as after an outer join
    assert state(world) == ({str(WHOLE): "43"}, {})


def test_a_row_of_another_group_is_refused(world: World) -> None:
    batch = StreamOffset("elsewhere", "m-1", 0, {"orders": "id-1"}, {TP: (lane("aa.1", 43, 60),)})
    with commits_at(world, 43) as commits, pytest.raises(CommitError, match=re.escape("of group 'elsewhere'")):
        commits.acknowledge(texts(batch, "43-43"))


def test_a_row_of_an_unknown_member_and_of_another_lane_epoch_reset_or_topic_is_refused(world: World) -> None:
    with commits_at(world, 43) as commits:
        departed = texts(batch_of(world, lane("aa.1", 43, 60), member="m-9"), "43-43")
        with pytest.raises(FencedMemberError, match="no member 'm-9'"):
            commits.acknowledge(departed)
        head = texts(batch_of(world, lane("aa.1", 43, 60)), "43-43")[0].split("/")[:9]
        for part, value in ((8, "aa.2"), (3, "7"), (5, "id-2"), (6, str(OTHER.partition))):
            forged = "/".join([*head[:part], value, *head[part + 1 :]])
            with pytest.raises(FencedMemberError):
                commits.acknowledge(sealed(forged, 43, 43))
    assert state(world) == ({str(WHOLE): "43"}, {})


def test_a_row_of_a_departed_member_does_not_stop_rows_of_others(world: World) -> None:
    departed = texts(batch_of(world, lane("aa.1", 43, 60), member="m-9"), "43-43")
    of_rows = texts(batch_of(world, lane("aa.1", 43, 60)), "43-44")
    with commits_at(world, 43) as commits, pytest.raises(FencedMemberError, match="no member 'm-9'"):
        commits.acknowledge([*departed, *of_rows])
    assert world.positions() == {str(WHOLE): "45"}


class Forgotten(dict[str, Any]):
    """Another thread removes each entry directly after it was stored."""

    def __setitem__(self, member: str, found: object) -> None:
        super().__setitem__(member, found)
        self.pop(member)


def test_another_thread_may_forget_the_member_during_a_call(world: World) -> None:
    with commits_at(world, 43) as commits:
        commits._members = Forgotten()
        assert commits.acknowledge(texts(batch_of(world, lane("aa.1", 43, 60)), "43-44")) == {TP: 45}


def test_the_policy_and_the_cap_hold_for_rows(world: World) -> None:
    batch = batch_of(world, lane("aa.1", 43, 60))
    with commits_at(world, 43, most=1) as commits:
        commits.acknowledge(texts(batch, "45-45"))
        with pytest.raises(MaxIndividualCommitReachedError):
            commits.acknowledge(texts(batch, "47-47"))
        world.policies.set_policy({"accept.individual.commit": "false"})
        with pytest.raises(IndividualCommitNotAllowedError):
            commits.acknowledge(texts(batch, "43-43"))


def test_after_a_loss_of_state_rows_wait_and_then_belong_to_no_lane(world: World) -> None:
    of_rows = texts(batch_of(world, lane("aa.1", 43, 60)), "43-43", "44-44")
    with commits_at(world, 43) as commits:
        commits.acknowledge(of_rows[0])
        world.restart()
        with pytest.raises(GroupRecoveringError):
            commits.acknowledge(of_rows[1])


def test_several_partitions_are_one_call(world: World) -> None:
    world.found(p0=43, p1=0)
    world.logs_reach()
    world.store.positions.acquire(world.join(), {TP: (WHOLE,), OTHER: (WHOLE,)})
    lanes = {TP: (lane("aa.1", 43, 60),), OTHER: (lane("aa.1", 0, 9),)}
    both = StreamOffset(world.group, "m-1", 0, {"orders": "id-1"}, lanes)
    with GroupCommits.of_group(world.url, world.group) as commits:
        assert commits.acknowledge([text_of(both, TP, "43-50"), text_of(both, OTHER, "0-3")]) == {TP: 51, OTHER: 4}


def test_committed_offsets_have_position_individual_commits_and_owner_of_each_range(world: World) -> None:
    batch = batch_of(world, lane("aa.1", 43, 60))
    with commits_at(world, 43) as commits:
        taken_over(world, UPPER)
        with pytest.raises(FencedMemberError, match=f"no longer owns {UPPER}"):
            commits.acknowledge(texts(batch, "43-44", "50-51"))
        found = commits.committed(TP)
        assert found.stable == 43
        assert found.ranges == (
            CommittedRange(LOWER, 45, tuple(ranges("50-51")), "m-1"),
            CommittedRange(UPPER, 43, (), "m-2"),
        )


def test_committed_offsets_of_free_ranges_have_no_owner_and_unknown_ones_are_an_error(world: World) -> None:
    world.found(p0=43)
    with GroupCommits.of_group(world.url, world.group) as commits:
        assert commits.committed(TP).ranges == (CommittedRange(WHOLE, 43, (), ""),)
        with pytest.raises(UnknownGroupError, match="no positions of orders-1"):
            commits.committed(OTHER)
    with (
        GroupCommits.of_group(world.url, "elsewhere") as nowhere,
        pytest.raises(UnknownGroupError, match="group 'elsewhere' has no positions"),
    ):
        nowhere.committed(TP)


def test_committed_offsets_leave_out_damaged_individual_commits(world: World) -> None:
    with commits_at(world, 43) as commits:
        world.set_ics({str(WHOLE): "60-50"})
        assert [part.done for part in commits.committed(TP).ranges] == [()]


def test_committed_offsets_of_damaged_positions_are_a_named_error(world: World) -> None:
    with commits_at(world, 43) as commits:
        world.redis.hset(GroupKeys(world.group).segments(TP), str(WHOLE), "x")
        with pytest.raises(StateFormatError):
            commits.committed(TP)


def test_a_pinned_member_has_the_cap_for_itself(world: World) -> None:
    """The hashes of another one are full and may have no reader. No assignment moves them."""
    world.found(p0=0)
    world.logs_reach()
    for member, half in (("m-1", LOWER), ("m-2", UPPER)):
        world.store.positions.acquire(world.pin(member, half), {TP: (half,)})
    world.set_ics({str(LOWER): "2-2 4-4"})
    world.redis.hset(GroupKeys(world.group).member("m-2"), "max.individual.commits", "2")
    with CommitApi.of_member(world.url, world.group, "m-2") as second:
        assert [second.commit(TP, ranges(each)).held for each in ("5-5", "7-7")] == [1, 2]
        with pytest.raises(MaxIndividualCommitReachedError):
            second.commit(TP, ranges("9-9"))
    (why,) = world.events("cap")
    assert why.startswith("orders-0 holds 2 of 2 individual commits")
