"""The Commit API on a group without order, in a real Redis: each call is refused by name, and nothing is committed."""

import json
from collections.abc import Callable
from dataclasses import replace

import pytest

from acknowledgements import text_of
from commit_apis import api, ranges
from coordinator.commits.acknowledger import Acknowledger
from coordinator.commits.commit_api import CommitApi
from coordinator.commits.group_commits import GroupCommits
from coordinator.commits.ordered_commits import OrderedCommits
from coordinator.errors import CommitWithoutOrderError, FencedMemberError, TopicRangeFetchNotAllowedError
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.commits import CommittedOffsets, CommittedRange
from coordinator.values.ranges import WHOLE, OffsetRange, offsets_of
from handed_slices import join
from store_world import TP, World, lane

ON_EACH_SERVER = True


def at_work(world: World) -> StreamOffset:
    """A group without order whose member reads the offsets 43 to 52: the offset of this batch, with order."""
    world.found(p0=43)
    world.logs_reach()
    me = join(world, "m-1", "i1", "none", "bb")
    handed = world.store.positions.hand_out(me, {TP: 53}, 10, 10).value
    return StreamOffset(world.group, "m-1", 0, {"orders": "id-1"}, {TP: (lane(handed.epoch, 43, 53),)})


def by_offset(world: World, end: StreamOffset) -> None:
    CommitApi.of_offset(world.url, json.dumps(end.to_json()))


def by_offset_of_its_slices(world: World, end: StreamOffset) -> None:
    CommitApi.of_offset(world.url, json.dumps(replace(end, by_key=False).to_json()))


def by_member(world: World, _: StreamOffset) -> None:
    CommitApi.of_member(world.url, world.group, "m-1")


def by_a_member_that_is_gone(world: World, _: StreamOffset) -> None:
    CommitApi.of_member(world.url, world.group, "m-gone")


def by_row(world: World, end: StreamOffset) -> None:
    with GroupCommits.of_group(world.url, world.group) as commits:
        commits.acknowledge(text_of(end, TP, "43-44"))


@pytest.mark.parametrize("way_in", [by_offset, by_offset_of_its_slices, by_member, by_a_member_that_is_gone, by_row])
def test_each_way_in_is_refused_by_name(world: World, way_in: Callable[[World, StreamOffset], None]) -> None:
    end = at_work(world)
    with pytest.raises(CommitWithoutOrderError) as refused:
        way_in(world, end)
    assert f"COMMIT_WITHOUT_ORDER: group {world.group!r} has ordering=none" in str(refused.value)
    assert "start them with ordering=key" in refused.value.remedy
    assert (world.positions(), world.ics()) == ({str(WHOLE): "43"}, {})


def collected(commits: CommitApi) -> None:
    acknowledger = Acknowledger(commits)
    acknowledger.done(TP, OffsetRange(43, 44))
    acknowledger.flush()


CALLS: list[Callable[[CommitApi], object]] = [
    lambda commits: commits.commit(TP, ranges("43-44")),
    lambda commits: commits.commit(TP, [], offset=45),
    lambda commits: OrderedCommits(commits, "w").reserve(TP, OffsetRange(43, 45)),
    lambda commits: OrderedCommits(commits, "w").commit(TP, OffsetRange(43, 45)),
    collected,
]


@pytest.mark.parametrize(
    ("ordering", "error"), [("none", CommitWithoutOrderError), ("partition", TopicRangeFetchNotAllowedError)]
)
@pytest.mark.parametrize("call", CALLS, ids=["commit", "commit of an offset", "reserve", "ordered commit", "collected"])
def test_a_commit_api_of_before_the_change_is_refused_by_name(
    world: World, call: Callable[[CommitApi], object], ordering: str, error: type[Exception]
) -> None:
    with api(world) as commits:
        call_before = commits.commit(TP, ranges("50-50"))
        join(world, "m-1", "i2", ordering, "bb")
        with pytest.raises(error):
            call(commits)
    assert call_before.held == 1
    assert (world.positions(), world.ics()) == ({str(WHOLE): "43"}, {str(WHOLE): "50-50"})


def test_rows_of_a_member_that_the_object_knows_are_refused_by_name_too(world: World) -> None:
    api(world).close()
    end = StreamOffset(world.group, "m-1", 0, {"orders": "id-1"}, {TP: (lane("aa.1", 43, 53),)})
    with GroupCommits.of_group(world.url, world.group) as commits:
        assert commits.acknowledge(text_of(end, TP, "43-43")) == {TP: 44}
        join(world, "m-1", "i2", "none", "bb")
        with pytest.raises(CommitWithoutOrderError):
            commits.acknowledge(text_of(end, TP, "44-44"))
    assert world.positions() == {str(WHOLE): "44"}


def test_after_the_change_to_order_the_offset_of_a_slice_commits_nothing(world: World) -> None:
    end = at_work(world)
    join(world, "m-1", "i2", "key", "cc")
    with (
        CommitApi.of_offset(world.url, json.dumps(end.to_json())) as commits,
        pytest.raises(FencedMemberError),
    ):
        commits.commit(TP, ranges("43-44"))


def test_the_progress_is_shown_without_owners(world: World) -> None:
    at_work(world)
    world.set_ics({str(WHOLE): "48-52"})
    with GroupCommits.of_group(world.url, world.group) as commits:
        assert commits.committed(TP) == CommittedOffsets(43, (CommittedRange(WHOLE, 43, offsets_of("48-52"), ""),))
