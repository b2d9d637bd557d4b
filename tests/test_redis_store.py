"""The verbs of the store, on a real Redis, with a clock of their own. Transition tests are named by the arrow."""

import secrets
import time
from collections.abc import Iterator

import pytest
import redis

from coordinator import verdicts
from coordinator.assignment_text import Ranges
from coordinator.assignors.assignor import Assignment
from coordinator.errors import RedisAccessError, RedisUnavailableError, StateFormatError, StateLostError
from coordinator.key_hash import cuts
from coordinator.keys import GroupKeys, encode
from coordinator.ownership import Fact, Owned, completed
from coordinator.progress import Progress
from coordinator.ranges import WHOLE, HashRange, OffsetRange
from coordinator.redis_calls import Caller
from coordinator.redis_client import RedisClient
from coordinator.redis_membership import Joining, Look
from coordinator.redis_snapshot import list_groups, read_group
from coordinator.redis_store import RedisStore
from coordinator.stream_offset import Lane, StreamOffset
from coordinator.subscription import Topic, TopicPartition

TP, OTHER = TopicPartition("orders", 0), TopicPartition("orders", 1)
TOPICS = {"orders": Topic("orders", "id-1", (0, 1))}
SESSION, LONGEST = 1_000, 5_000
WANTED: Ranges = {TP: (WHOLE,)}
NOBODY = Caller()
BIG = 2**53 + 1  # a double cannot tell this from 2^53


class World:
    """A store of one group with a clock that stands still until it is moved."""

    def __init__(self, url: str) -> None:
        self.group = f"store {secrets.token_hex(4)}"
        self.client = RedisClient(url)
        self.redis = redis.Redis.from_url(url, decode_responses=True)  # does what the store never does
        self.now = time.time_ns() // 1_000_000
        self.store = RedisStore(
            self.client, self.group, session_ms=SESSION, longest_ms=LONGEST, retention_ms=60_000, now=lambda: self.now
        )

    def found(self, **positions: int) -> None:
        tps = {"p0": TP, "p1": OTHER}
        self.store.found(NOBODY, "aa", TOPICS, {tps[n]: p for n, p in positions.items()} or {TP: 0})

    def join(self, member: str = "m-1", incarnation: str = "i1", before: str = "", application: str = "") -> Caller:
        answer = self.store.join(
            Caller(member, incarnation),
            before,
            Joining({"host": "h", "topics": "orders", "capacity": "1"}, application),
        )
        return Caller(member, incarnation, answer.seen.nonce, str(answer.seen.seq))

    def positions(self, tp: TopicPartition = TP) -> dict[str, str]:
        with self.client.reading() as reading:
            return reading.hgetall(GroupKeys(self.group).segments(tp))

    def restart(self) -> None:
        """What a restarted server looks like to the scripts: another run id."""
        self.redis.hset(GroupKeys(self.group).meta, "run_id", "0")

    def close(self) -> None:
        self.client.close()
        self.redis.close()


@pytest.fixture
def world(redis_url: str) -> Iterator[World]:
    world = World(redis_url)
    yield world
    world.close()


def offset(*lanes: Lane, reset: int = 0, topic_id: str = "id-1") -> StreamOffset:
    return StreamOffset("g", "m-1", reset, {"orders": topic_id}, {TP: lanes})


def lane(epoch: str, start: int, until: int, hashes: HashRange = WHOLE) -> Lane:
    return Lane(hashes, epoch, start, (OffsetRange(start, until),))


def test_nothing_to_founded_sets_first_positions_once(world: World) -> None:
    with pytest.raises(verdicts.Absent):
        world.store.status(NOBODY)
    assert world.store.found(NOBODY, "aa", TOPICS, {TP: 5}) == 1
    assert world.store.found(NOBODY, "bb", TOPICS, {TP: 9, OTHER: 7}) == 1
    assert world.store.status(NOBODY).seen.nonce == "aa"
    assert world.store.stable(["orders"]) == {TP: 5, OTHER: 7}
    assert world.group in list_groups(world.client)


def test_free_to_owned_gives_a_new_epoch_and_owned_to_owned_keeps_it(world: World) -> None:
    world.found()
    me = world.join()
    first = world.store.acquire(me, WANTED).value
    assert first.ownership == {TP: (Owned(WHOLE, "aa.1"),)}
    assert world.store.acquire(me, WANTED).value.ownership == first.ownership


def test_released_to_owned_takes_an_epoch_never_used_before(world: World) -> None:
    world.found()
    me = world.join()
    world.store.acquire(me, WANTED)
    assert world.store.leave(me, {TP: ()}) == 0
    assert world.store.acquire(world.join("m-1", "i2"), WANTED).value.ownership == {TP: (Owned(WHOLE, "aa.2"),)}


def test_commit_moves_positions_and_repeats_change_nothing(world: World) -> None:
    world.found()
    me = world.join()
    world.store.acquire(me, WANTED)
    lower, upper = cuts(2)
    end = offset(lane("aa.1", 0, 10, lower), lane("aa.1", 0, 20, upper))
    for _ in range(2):
        assert world.store.commit(me, end, completed(end)).value == {}
        assert world.positions() == {str(lower): "10", str(upper): "20"}
        assert world.store.stable(["orders"])[TP] == 10


def test_an_older_commit_never_moves_a_position_back(world: World) -> None:
    world.found()
    me = world.join()
    world.store.acquire(me, WANTED)
    for until in (20, 10):
        end = offset(lane("aa.1", 0, until))
        world.store.commit(me, end, completed(end))
    assert world.positions() == {str(WHOLE): "20"}


def test_equal_neighbours_become_one_segment_again(world: World) -> None:
    world.found()
    me = world.join()
    world.store.acquire(me, WANTED)
    for n in (2, 7, 3):
        end = offset(*(lane("aa.1", 0, 10 * n, h) for h in cuts(n)))
        world.store.commit(me, end, completed(end))
    assert world.positions() == {str(WHOLE): "70"}


def test_positions_beyond_what_a_double_holds_are_compared_exactly(world: World) -> None:
    world.found(p0=BIG - 1)
    me = world.join()
    world.store.acquire(me, WANTED)
    end = offset(lane("aa.1", BIG - 1, BIG))
    world.store.commit(me, end, completed(end))
    assert world.store.stable(["orders"])[TP] == BIG
    world.store.claim(NOBODY, end, {TP: (Fact(WHOLE, BIG - 1),)})
    assert world.store.stable(["orders"])[TP] == BIG


def test_a_commit_of_another_epoch_is_refused_and_does_not_block_what_is_owned(world: World) -> None:
    world.found()
    me = world.join()
    world.store.acquire(me, WANTED)
    lower, upper = cuts(2)
    end = offset(lane("aa.1", 0, 10, lower), lane("aa.9", 0, 20, upper))
    assert world.store.commit(me, end, completed(end)).value == {TP: (Fact(upper, 20, "aa.9"),)}
    assert world.positions() == {str(lower): "10", str(upper): "0"}


@pytest.mark.parametrize(
    "end",
    [
        pytest.param(offset(lane("aa.1", 0, 10), reset=1), id="of another reset epoch"),
        pytest.param(offset(lane("aa.1", 0, 10), topic_id="id-2"), id="of another topic id"),
    ],
)
def test_facts_of_another_world_are_refused_and_ignored(world: World, end: StreamOffset) -> None:
    world.found()
    me = world.join()
    world.store.acquire(me, WANTED)
    assert world.store.commit(me, end, completed(end)).value == completed(end)
    world.store.claim(NOBODY, end, {TP: (Fact(WHOLE, 10),)})
    assert world.store.authorize(me, end).value == {TP: ()}
    assert world.positions() == {str(WHOLE): "0"}


def test_authorisation_names_the_parts_still_owned(world: World) -> None:
    world.found()
    me = world.join()
    world.store.acquire(me, WANTED)
    lower, upper = cuts(2)
    end = offset(lane("aa.1", 0, 10, lower), lane("aa.7", 0, 10, upper))
    assert world.store.authorize(me, end).value == {TP: (Owned(lower, "aa.1"),)}


def test_live_to_takeable_keeps_the_owner_until_another_member_acquires(world: World) -> None:
    world.found()
    me = world.join()
    world.store.acquire(me, WANTED)
    world.now += 10 * SESSION
    end = offset(lane("aa.1", 0, 10))
    assert world.store.authorize(me, end).value == {TP: (Owned(WHOLE, "aa.1"),)}
    assert world.store.commit(me, end, completed(end)).value == {}


def test_takeable_to_taken_fences_the_old_owner(world: World) -> None:
    world.found()
    me = world.join()
    world.store.acquire(me, WANTED)
    world.now += 10 * SESSION
    other = world.join("m-2", "i2")
    assert world.store.acquire(other, WANTED).value.ownership == {TP: (Owned(WHOLE, "aa.2"),)}
    end = offset(lane("aa.1", 0, 10))
    assert world.store.authorize(me, end).value == {TP: ()}
    assert world.store.commit(me, end, completed(end)).value == completed(end)
    assert world.positions() == {str(WHOLE): "0"}


def test_a_second_member_of_one_application_is_busy_until_the_lease_ends(world: World) -> None:
    world.found()
    world.join(application="driver")
    world.join("m-3", "i3", application="another driver")
    with pytest.raises(verdicts.Busy) as busy:
        world.join("m-2", "i2", application="driver")
    assert (busy.value.member, busy.value.lease_end_ms) == ("m-1", world.now + SESSION)
    world.now += SESSION + 1
    world.join("m-2", "i2", application="driver")


# -- several members ---------------------------------------------------------------------------


def assigned(world: World, caller: Caller, assignment: Assignment) -> int:
    look = world.store.look(caller).value
    return world.store.assign(caller, look.occasion, "test 1", assignment).value


def test_an_assignment_is_due_when_members_or_topics_have_changed_and_then_no_more(world: World) -> None:
    world.found()
    one = world.join()
    look = world.store.look(one).value
    assert (look.members, look.mine, look.generation) == (("m-1",), {}, 0)
    assert assigned(world, one, {"m-1": WANTED}) == 1
    assert world.store.look(one).value == Look(1, WANTED, "", ())
    world.join("m-2", "i2")
    assert world.store.look(one).value.members == ("m-1", "m-2")
    lower, upper = cuts(2)
    assert assigned(world, one, {"m-1": {TP: (lower,)}, "m-2": {TP: (upper,)}}) == 2
    world.found(p1=0)
    assert world.store.look(one).value.occasion == "", "a partition that was counted before changes nothing"
    more = {"orders": Topic("orders", "id-1", (0, 1, 2))}
    world.store.found(NOBODY, "aa", more, {TopicPartition("orders", 2): 0})
    assert world.store.look(one).value.occasion != ""


def test_the_first_assignment_recorded_wins(world: World) -> None:
    world.found()
    one, two = world.join(), world.join("m-2", "i2")
    occasion = world.store.look(one).value.occasion
    assert world.store.assign(two, occasion, "test 1", {"m-2": WANTED}).value == 1
    assert world.store.assign(one, occasion, "test 1", {"m-1": WANTED}).value == 0
    assert world.store.assignment() == {"m-2": WANTED}


def test_owned_to_released_to_acquired_one_range_at_a_time(world: World) -> None:
    world.found()
    one = world.join()
    world.store.acquire(one, WANTED)
    two = world.join("m-2", "i2")
    lower, upper = cuts(2)
    assert world.store.acquire(two, {TP: (upper,)}).value.ownership == {TP: ()}, "its owner is alive"
    assert world.store.release(one, {TP: ((upper, "m-2"),)}).value == 1
    assert world.store.acquire(two, {TP: (upper,)}).value.ownership == {TP: (Owned(upper, "aa.2"),)}
    assert world.store.acquire(one, {TP: (lower,)}).value.ownership == {TP: (Owned(lower, "aa.1"),)}
    assert list(world.positions()) == [str(lower), str(upper)], "segments are cut where ownership changes"


def test_nothing_is_released_to_a_member_that_is_gone_or_leaving(world: World) -> None:
    world.found()
    one = world.join()
    world.store.acquire(one, WANTED)
    assert world.store.release(one, {TP: ((WHOLE, "m-9"),)}).value == 0
    two = world.join("m-2", "i2")
    assert world.store.finish(two, {TP: 0}).value is True
    assert world.store.release(one, {TP: ((WHOLE, "m-2"),)}).value == 0


def test_a_batch_longer_than_the_longest_makes_ranges_takeable_though_the_heart_beats(world: World) -> None:
    world.found()
    one, two = world.join(), world.join("m-2", "i2")
    world.store.acquire(one, WANTED)
    end = offset(lane("aa.1", 0, 10))
    world.store.authorize(one, end)
    for _ in range(6):
        world.now += SESSION - 1
        world.store.heartbeat(one)
        world.store.heartbeat(two)
    assert world.store.look(two).value.members == ("m-2",), "the assignor passes over a hung member"
    assert world.store.acquire(two, WANTED).value.ownership == {TP: (Owned(WHOLE, "aa.2"),)}
    assert world.store.commit(one, end, completed(end)).value == completed(end)


def test_targets_of_available_now_are_raised_to_those_of_the_others(world: World) -> None:
    world.found()
    first = Joining({}, targets={TP: 10, OTHER: 30})
    second = Joining({}, targets={TP: 20, OTHER: BIG})
    assert world.store.join(Caller("m-1", "i1"), "", first).value == {TP: 10, OTHER: 30}
    assert world.store.join(Caller("m-2", "i2"), "", second).value == {TP: 20, OTHER: BIG}
    assert world.store.join(Caller("m-3", "i3"), "", first).value == {TP: 20, OTHER: BIG}


def test_a_new_life_fences_the_old_one_in_every_verb(world: World) -> None:
    world.found()
    old = world.join()
    world.store.acquire(old, WANTED)
    world.join("m-1", "i2")
    end = offset(lane("aa.1", 0, 10))
    for verb in (
        lambda: world.store.heartbeat(old),
        lambda: world.store.acquire(old, WANTED),
        lambda: world.store.authorize(old, end),
        lambda: world.store.commit(old, end, completed(end)),
        lambda: world.store.finish(old, {TP: 0}),
        lambda: world.store.leave(old, {TP: ()}),
        lambda: world.join("m-1", "i1", before="aa"),
    ):
        with pytest.raises(verdicts.Fenced):
            verb()
    assert world.positions() == {str(WHOLE): "0"}


def test_leaving_keeps_unconfirmed_ranges_until_the_lease_ends(world: World) -> None:
    world.found()
    me = world.join()
    world.store.acquire(me, WANTED)
    _, upper = cuts(2)
    assert world.store.leave(me, {TP: (upper,)}) == 1
    state = read_group(world.client, world.group)
    assert state.owners == {TP: ((upper, "aa.1", "m-1"),)}
    assert state.leases_ms == {"m-1": world.now + SESSION}


def test_finish_looks_at_every_hash_whoever_owns_it(world: World) -> None:
    world.found(p0=5, p1=7)
    me = world.join()
    assert world.store.finish(me, {TP: 5, OTHER: 8}).value is False
    assert world.store.finish(me, {TP: 5, OTHER: 7}).value is True


def test_the_whole_group_expires_at_one_moment_after_the_lease(world: World) -> None:
    world.found()
    me = world.join()
    world.store.acquire(me, WANTED)
    world.store.report_ends({TP: 9})
    world.store.heartbeat(me)
    keys = GroupKeys(world.group)
    moments = {world.redis.pexpiretime(k) for k in keys.all(["m-1"], [TP]) if world.redis.exists(k)}
    assert moments == {world.now + SESSION + 60_000}


# -- loss of state -----------------------------------------------------------------------------


def test_restarted_to_recovering_voids_epochs_and_takes_assertions_only(world: World) -> None:
    world.found(p0=5)
    me = world.join()
    world.store.acquire(me, WANTED)
    end = offset(lane("aa.1", 5, 10))
    world.restart()
    with pytest.raises(verdicts.Lost):
        world.store.commit(me, end, completed(end))
    world.store.recover(me, "bb", "restarted", TOPICS, {TP: None, OTHER: 3})
    with pytest.raises(verdicts.Rejoin):
        world.store.heartbeat(me)
    me = world.join(before="aa")
    with pytest.raises(verdicts.Recovering):
        world.store.commit(me, end, completed(end))
    world.store.claim(NOBODY, end, {TP: (Fact(WHOLE, 8),)})
    assert world.store.stable(["orders"]) == {TP: 8, OTHER: 3}


def test_recovering_to_working_gives_new_epochs_and_refuses_the_old(world: World) -> None:
    world.found(p0=5)
    me = world.join()
    world.store.acquire(me, WANTED)
    world.restart()
    world.store.recover(me, "bb", "restarted", TOPICS, {TP: None})
    world.now += SESSION + 1
    me = world.join(before="aa")
    end = offset(lane("aa.1", 5, 10))
    assert world.store.commit(me, end, completed(end)).value == completed(end)
    acquired = world.store.acquire(me, WANTED).value
    assert acquired.ownership == {TP: (Owned(WHOLE, "bb.1"),)}
    assert acquired.progress == {TP: Progress.starting_at(5)}


def test_an_earlier_copy_is_seen_by_its_commit_sequence(world: World) -> None:
    world.found()
    me = world.join()
    newer = Caller(me.member, me.incarnation, me.nonce, str(int(me.seq) + 100))
    with pytest.raises(verdicts.Lost, match="earlier"):
        world.store.heartbeat(newer)


def test_a_second_recovery_of_the_same_loss_does_nothing(world: World) -> None:
    world.found()
    me = world.join()
    world.restart()
    world.store.recover(me, "bb", "restarted", TOPICS, {TP: None})
    world.store.recover(me, "cc", "restarted", TOPICS, {TP: None})
    assert world.store.status(NOBODY).seen.nonce == "bb"


def test_a_partition_that_nothing_proves_stops_the_recovery_before_it_writes(world: World) -> None:
    with pytest.raises(StateLostError, match="orders-1"):
        world.store.recover(Caller("m", "i", "aa", "9"), "bb", "gone", TOPICS, {TP: 5, OTHER: None})
    with pytest.raises(verdicts.Absent):
        world.store.status(NOBODY)


def test_a_recreated_topic_gets_new_positions_and_void_epochs(world: World) -> None:
    world.found(p0=50)
    me = world.join()
    world.store.acquire(me, WANTED)
    again = {"orders": Topic("orders", "id-2", (0,))}
    world.store.recreate(NOBODY, again, {TP: 3})
    end = offset(lane("aa.1", 50, 60))
    assert world.store.commit(me, end, completed(end)).value == completed(end)
    assert world.store.acquire(me, WANTED).value.ownership == {TP: (Owned(WHOLE, "aa.2"),)}
    assert world.store.stable(["orders"])[TP] == 3


# -- what is not ours --------------------------------------------------------------------------


def test_state_of_a_newer_schema_is_refused_and_kept(world: World) -> None:
    world.found()
    world.redis.hset(GroupKeys(world.group).meta, "schema", "2")
    with pytest.raises(StateFormatError, match="schema '2'"):
        world.store.found(NOBODY, "bb", TOPICS, {TP: 9})
    assert world.positions() == {str(WHOLE): "0"}


def test_a_key_of_another_type_is_refused_by_name(world: World) -> None:
    world.redis.set(GroupKeys(world.group).meta, "somebody else's")
    with pytest.raises(StateFormatError, match="not ours"):
        world.store.status(NOBODY)


def test_a_redis_that_does_not_answer_is_named_without_its_password() -> None:
    with pytest.raises(RedisUnavailableError) as error:
        RedisStore(
            RedisClient("redis://:hunter2@127.0.0.1:1/0"), "g", session_ms=1, longest_ms=1, retention_ms=1
        ).status(NOBODY)
    assert "127.0.0.1:1" in str(error.value)
    assert "hunter2" not in str(error.value)


def test_a_wrong_password_is_an_access_error_without_the_password(redis_url: str) -> None:
    url = redis_url.replace("redis://", "redis://nobody:hunter2@")
    with pytest.raises(RedisAccessError) as error:
        RedisStore(RedisClient(url), "g", session_ms=1, longest_ms=1, retention_ms=1).status(NOBODY)
    assert "hunter2" not in str(error.value)


@pytest.mark.parametrize(
    ("group", "encoded"),
    [
        pytest.param("orders-1.a_b", "orders-1.a_b", id="plain names stay"),
        pytest.param("a b", "a%20b", id="spaces are encoded"),
        pytest.param("{x}", "%7Bx%7D", id="braces cannot make another hash tag"),
        pytest.param('"~\n', "%22%7E%0A", id="quotes, tildes and newlines are encoded"),
        pytest.param("é", "%C3%A9", id="other letters are encoded as UTF-8"),
    ],
)
def test_group_names_in_keys(group: str, encoded: str) -> None:
    assert encode(group) == encoded
    assert GroupKeys(group).meta == "coop:v1:{" + encoded + "}:meta"
