"""Redis contents damaged by hand: each reader gets a named error with a remedy, and nothing is overwritten."""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import cast

import pytest

from coordinator.errors import CoopKafkaError, StateFormatError
from coordinator.progress.ownership import Fact, Owned, completed
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.commits import CommitVerbs, Reservation
from coordinator.redis.events import last_events
from coordinator.redis.group_state import GroupState
from coordinator.redis.keys import GroupKeys
from coordinator.redis.operator import OperatorVerbs
from coordinator.redis.replies import Caller, Joining
from coordinator.redis.snapshot import read_group
from coordinator.tools.operations import copies
from coordinator.tools.operations.gaps import gaps
from coordinator.tools.operations.group_look import look_at
from coordinator.tools.operations.key_owner import key_owners
from coordinator.tools.operations.top_view import limited_lanes, top_view
from coordinator.tools.operations.views import view
from coordinator.values import verdicts
from coordinator.values.key_hash import cuts
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import Topic, TopicPartition
from store_world import OTHER, SESSION, TOPICS, TP, WANTED, StoreServer, World, lane, offset

LOWER, UPPER = (str(h) for h in cuts(2))
TOO_LARGE = "9223372036854775808"
HUGE = "9" * 40
HELD = "m-2/w held until 5 for 5"
BEATS = ("updated_at", "commit_seq", "computing", "computing_member", "computing_until")  # of `meta`: no state


@pytest.fixture
def lived(world: World) -> World:
    """A group with a member that owns a partition, and something of everything that Redis may hold."""
    world.found(p0=5, p1=5)
    world.logs_reach(20)
    me = world.join()
    look = world.store.members.look(me).value
    world.store.members.assign(me, look.occasion, "test 1", {"m-1": WANTED})
    world.store.positions.acquire(me, WANTED)
    world.set_ics({str(WHOLE): "12-13"})
    more = {"orders": Topic("orders", "id-1", (0, 1, 2, 3))}
    world.store.positions.create("", more, {TopicPartition("orders", 2): 0}, grace_ms=9)
    world.store.poison.working(me, f"orders 0 {WHOLE} 5-9;")
    world.redis.hset(GroupKeys(world.group).strikes, f"orders 0 {WHOLE}", "struck 1 5-6 9 m-1")
    return world


DUMP = """
local read = { hash = 'HGETALL', set = 'SMEMBERS', string = 'GET', stream = 'XLEN' }
local found = {}
for i, key in ipairs(KEYS) do
  local command = read[redis.call('TYPE', key)['ok']]
  found[i] = command and redis.call(command, key) or ''
end
return found
"""


def dump(world: World) -> dict[str, object]:
    """All that the group holds, but for its heartbeats."""
    keys = GroupKeys(world.group)
    names = [*keys.all([TP, OTHER]), keys.member("m-1")]
    found = dict(zip(names, cast(list[object], world.redis.eval(DUMP, len(names), *names)), strict=True))
    meta = found[keys.meta]
    if isinstance(meta, list):
        found[keys.meta] = {k: v for k, v in zip(meta[::2], meta[1::2], strict=True) if k not in BEATS}
    return found


def verbs(world: World) -> Iterator[tuple[str, Callable[[], object]]]:
    """The calls of members, operators and tools on a group."""
    store, me, end = world.store, Caller("m-1", "i1", "aa", "0"), offset(lane("aa.1", 5, 10))
    commits = CommitVerbs(ScriptCalls(world.client, world.group, session_ms=SESSION, longest_ms=1, retention_ms=1))
    yield "read_group", lambda: read_group(world.client, world.group)
    yield "status", store.positions.status
    yield "stable", lambda: store.positions.stable(["orders"])
    yield "growths", store.positions.growths
    yield "policy", store.policies.policy
    yield "strikes", store.poison.strikes
    yield "strike", lambda: store.poison.strike("m-1")
    yield "assignment", store.members.assignment
    yield "subscribers", lambda: store.members.subscribers(["m-1"])
    yield "positions", lambda: store.positions.positions([TP])
    yield "create_positions", lambda: store.positions.create("aa", TOPICS, {TP: 0, OTHER: 0})
    yield "look", lambda: store.members.look(me)
    yield "acquire", lambda: store.positions.acquire(me, {OTHER: (WHOLE,), TP: (WHOLE,)})
    yield "heartbeat", lambda: store.members.heartbeat(me)
    yield "authorize", lambda: store.positions.authorize(me, end)
    yield (
        "commit_ranges",
        lambda: commits.commit_ranges(commits.standing(me), TP, (Owned(WHOLE, "aa.1"),), (OffsetRange(14, 15),), 9),
    )
    yield (
        "reserve",
        lambda: commits.reserve(
            commits.standing(me), TP, Reservation("w-2", OffsetRange(5, 8), (Owned(WHOLE, "aa.1"),)), "held", SESSION
        ),
    )
    yield "extents", lambda: store.positions.extents(["orders"])
    yield "claim", lambda: store.positions.claim(end, {OTHER: (Fact(WHOLE, 6),), TP: (Fact(WHOLE, 6),)})
    yield "commit", lambda: store.positions.commit(me, end, completed(end))
    yield "finish", lambda: store.members.finish(me, {TP: 5})
    yield "release", lambda: store.members.release(me, WANTED)
    yield "leave", lambda: store.members.leave(me, {OTHER: (), TP: (WHOLE,)})


@contextmanager
def unchanged_if_refused(world: World, verb: str, refused: list[str]) -> Iterator[None]:
    before = dump(world)
    try:
        yield
    except CoopKafkaError as error:
        assert error.remedy, f"{verb} names no remedy: {error}"
        assert dump(world) == before, f"{verb} was refused ({error}), and has written"
        refused.append(verb)
    except verdicts.Verdict:
        assert dump(world) == before, f"{verb} was refused, and has written"
        refused.append(verb)


FIELDS = [
    pytest.param("meta", "schema", "2", id="a schema newer than ours"),
    pytest.param("meta", "schema", "junk", id="a schema that is no number"),
    pytest.param("meta", "nonce", "not hex!", id="a nonce that we never write"),
    pytest.param("meta", "nonce", "", id="an empty nonce"),
    pytest.param("meta", "founding", "AB", id="a founding in capitals, which no checkpoint can hold"),
    pytest.param("meta", "commit_seq", "many", id="a commit sequence that is no number"),
    pytest.param("meta", "commit_seq", HUGE, id="a commit sequence too large to count on"),
    pytest.param("meta", "commit_seq", "-1", id="a negative commit sequence"),
    pytest.param("meta", "commit_seq", "007", id="a commit sequence with zeros in front"),
    pytest.param("meta", "commit_seq", "9" * 19, id="a commit sequence beyond 2^63"),
    pytest.param("meta", "reset_epoch", "x", id="a reset epoch that is no number"),
    pytest.param("meta", "reset_epoch", HUGE, id="a reset epoch too large"),
    pytest.param("meta", "epochs", "ten", id="a counter of lane epochs that is no number"),
    pytest.param("meta", "epochs", "1.5", id="half a lane epoch"),
    pytest.param("meta", "joins", "often", id="a counter of joins that is no number"),
    pytest.param("meta", "generation", "first", id="a generation that is no number"),
    pytest.param("meta", "recovering_until", "later", id="a recovery that ends at no time"),
    pytest.param("meta", "computing_until", "soon", id="a turn that ends at no time"),
    pytest.param("meta", "ordering", "", id="an empty ordering"),
    pytest.param("meta", "ordering", "NONE", id="an ordering in capitals"),
    pytest.param("topics", "orders", "", id="a topic without content"),
    pytest.param("topics", "orders", "id-1", id="a topic without a count"),
    pytest.param("topics", "orders", "id-1 two", id="a count that is no number"),
    pytest.param("topics", "orders", "id-1 -4", id="a negative count"),
    pytest.param("topics", "orders", "id-1 4 more", id="a topic with more fields"),
    pytest.param("topics", "orders", "id-1 0", id="a topic without partitions"),
    pytest.param("segments", str(WHOLE), "junk", id="a position that is no number"),
    pytest.param("segments", str(WHOLE), "", id="an empty position"),
    pytest.param("segments", str(WHOLE), "007", id="a position with zeros in front"),
    pytest.param("segments", str(WHOLE), "-5", id="a negative position"),
    pytest.param("segments", str(WHOLE), "5.0", id="a position with a fraction"),
    pytest.param("segments", str(WHOLE), TOO_LARGE, id="a position beyond 2^63"),
    pytest.param("segments", str(WHOLE), HUGE, id="a position of forty digits"),
    pytest.param("segments", LOWER, "7", id="a segment inside another"),
    pytest.param("segments", "junk", "5", id="a segment of no hashes"),
    pytest.param("segments", "0-5", "5", id="a segment of short hashes"),
    pytest.param("segments", f"{LOWER[17:]}-{LOWER[:16]}", "5", id="an inverted segment"),
    pytest.param("segments", "8000000000000000-8fffffffffffffff", "5", id="a segment beyond the hash space"),
    pytest.param("segments", WHOLE.__str__().upper(), "5", id="a segment in capitals"),
    pytest.param("owners", str(WHOLE), "nobody", id="an owner without a lane epoch"),
    pytest.param("owners", str(WHOLE), "", id="an empty owner"),
    pytest.param("owners", str(WHOLE), "aa m-1", id="a lane epoch without its number"),
    pytest.param("owners", str(WHOLE), "aa.1", id="a lane epoch without a member"),
    pytest.param("owners", str(WHOLE), "aa.1 m-1 m-2", id="two owners of one range"),
    pytest.param("owners", UPPER, "aa.1 m-2", id="owners that overlap"),
    pytest.param("owners", UPPER.replace("-", "_"), "aa.1 m-1", id="an owner of hashes that are joined otherwise"),
    pytest.param("owners", "junk", "aa.1 m-1", id="an owner of no hashes"),
    pytest.param("owners", f"{UPPER[17:]}-{UPPER[:16]}", "aa.1 m-1", id="an owner of inverted hashes"),
    pytest.param("stable", "zero", "5", id="a partition that is no number"),
    pytest.param("end", "0", "far", id="a log end that is no number"),
    pytest.param("growth", "orders", "id 1 2", id="a growth without counts"),
    pytest.param("growth", "orders 4 2", "id-1 1 2", id="a topic that shrank"),
    pytest.param("growth", f"orders 1 {10**9}", "id-1 1 2", id="a growth to a billion partitions"),
    pytest.param("growth", "orders 2 4", "junk", id="a growth without content"),
    pytest.param("growth", "orders 2 4", "id-1 1 2 9", id="a growth with too few ends"),
    pytest.param("policy", "accept.individual.commit", "maybe", id="a policy that is neither true nor false"),
    pytest.param("policy", "no.such.policy", "true", id="a policy of another version"),
    pytest.param("strikes", f"orders 0 {WHOLE}", "junk", id="a strike that is no strike"),
    pytest.param("strikes", "orders zero x", "struck 1 5-6 9 m-1", id="a strike at no lane"),
    pytest.param("strikes", f"orders 0 {WHOLE}", "struck 1 5-6 9", id="a strike without its member"),
    pytest.param("assignment", "m-1", "{", id="an assignment that is no JSON"),
    pytest.param("assignment", "m-1", "[1]", id="an assignment of another form"),
    pytest.param("assignment", "m-1", '{"orders":{"0":["5-9"]}}', id="an assignment of short hashes"),
    pytest.param("assignment", "m-1", '{"orders":{"zero":[]}}', id="an assignment of no partition"),
    pytest.param("member", "capacity", "lots", id="a member whose capacity is no number"),
    pytest.param("member", "capacity", "0", id="a member without capacity"),
    pytest.param("member", "slow_percent", "half", id="a member whose slow slots are no number"),
    pytest.param("member", "backlog_ms", "-1", id="a member whose backlog is no time"),
    pytest.param("member", "load_percent", "1.5", id="a member whose load is no whole number"),
    pytest.param("member", "longest.batch.ms", "soon", id="a member whose longest batch is no number"),
    pytest.param("member", "batch.time.budget", "soon", id="a member whose budget is no number"),
]
KINDS = ["meta", "leases", "batches", "leaving", "events", "topics", "segments", "owners", "ics", "stable", "policy"]
KINDS += ["growth", "assignment", "member", "strikes"]


def key_of(world: World, name: str) -> str:
    keys = GroupKeys(world.group)
    of_its_own = {"segments": keys.segments(TP), "owners": keys.owners(TP), "ics": keys.ics(TP)}
    of_its_own |= {
        "stable": keys.stable("orders"),
        "end": keys.end("orders"),
        "epoch": keys.epoch("orders"),
        "reserved": keys.reserved(TP),
        "member": keys.member("m-1"),
    }
    return of_its_own.get(name) or str(getattr(keys, name))


def meet(world: World) -> list[str]:
    """The verbs that refuse the damage; all others do what they are for."""
    refused: list[str] = []
    for name, verb in verbs(world):
        with unchanged_if_refused(world, name, refused):
            verb()
    return refused


def looks(world: World) -> Iterator[tuple[str, Callable[[], object]]]:
    """The views of a group by `coop-kafka`."""
    client, group, key = world.client, world.group, b"a key"

    def state() -> GroupState:
        return read_group(client, group)

    yield "describe", lambda: (view(group, state()), limited_lanes(state()))
    yield "gaps", lambda: gaps(state())
    yield "owner", lambda: key_owners(state(), "orders", key)
    yield "top", lambda: top_view(look_at(client, group, strikes=False))
    yield "parked", lambda: (state(), world.store.poison.strikes())
    yield "events", lambda: (state(), last_events(client, group, 9))
    yield "policy", OperatorVerbs.of_group(client, group).policies.policy


def look(world: World) -> dict[str, str]:
    """The views that refuse to show the group, and their errors. No view writes anything, whatever the damage."""
    before, refused = dump(world), dict[str, str]()
    for name, show in looks(world):
        try:
            show()
        except CoopKafkaError as error:
            assert error.remedy, f"{name} names no remedy: {error}"
            refused[name] = str(error)
    assert dump(world) == before
    return refused


@pytest.mark.parametrize(("name", "field", "damage"), FIELDS)
def test_a_damaged_field_is_refused_by_name(lived: World, name: str, field: str, damage: str) -> None:
    lived.redis.hset(key_of(lived, name), field, damage)
    look(lived)
    assert meet(lived), "nobody has seen it"
    assert lived.redis.hget(key_of(lived, name), field) == damage, "somebody has mended it in silence"


COMMITS = [
    pytest.param(str(WHOLE), "junk", id="no offsets"),
    pytest.param(str(WHOLE), "", id="nothing"),
    pytest.param(str(WHOLE), "15-12", id="inverted"),
    pytest.param(str(WHOLE), "12-15 14-20", id="overlapping"),
    pytest.param(str(WHOLE), "20-21 12-13", id="out of order"),
    pytest.param(str(WHOLE), "12-13-14", id="two ends"),
    pytest.param(str(WHOLE), "12-13 ", id="a blank at the end"),
    pytest.param(str(WHOLE), "12-13,15-16", id="joined otherwise"),
    pytest.param(str(WHOLE), "6-007", id="zeros in front"),
    pytest.param(str(WHOLE), f"6-{HUGE}", id="offsets of forty digits"),
    pytest.param(str(WHOLE), "6-9223372036854775807", id="offsets up to 2^63"),
    pytest.param(LOWER, "14-15", id="hashes that overlap"),
    pytest.param("junk", "14-15", id="no hashes"),
    pytest.param(f"{UPPER[17:]}-{UPPER[:16]}", "14-15", id="inverted hashes"),
    pytest.param("0-5", "14-15", id="short hashes"),
]


@pytest.mark.each_server
@pytest.mark.parametrize(("field", "damage"), COMMITS)
def test_damaged_individual_commits_are_deleted_with_one_event_and_no_call_is_refused(
    lived: World, field: str, damage: str
) -> None:
    """They may vanish at any time: their offsets are read again."""
    key = key_of(lived, "ics")
    lived.redis.hset(key, field, damage)
    assert look(lived) == {}
    lived.store.positions.acquire(Caller("m-1", "i1", "aa", "0"), WANTED)
    assert len(lived.ics()) == (field != str(WHOLE)), "sound commits stay"
    assert meet(lived) == []
    (event,) = [why for why in lived.events("mend") if "damaged" in why]
    assert event == f"{key} had 1 damaged entries; they are deleted, and their offsets are read again"


@pytest.mark.each_server
@pytest.mark.parametrize(
    "segments",
    [
        pytest.param([LOWER], id="the upper half is gone"),
        pytest.param([UPPER], id="the lower half is gone"),
        pytest.param([LOWER, UPPER.replace("4", "5", 1)], id="a hole between two segments"),
        pytest.param([LOWER, UPPER.replace("0-", "1-")], id="a hole of one hash"),
        pytest.param([str(WHOLE).replace("f" * 15, "f" * 14 + "e")], id="the last hash is gone"),
    ],
)
def test_a_hole_among_the_segments_is_refused_by_name(lived: World, segments: list[str]) -> None:
    lived.redis.delete(key_of(lived, "segments"))
    lived.redis.hset(key_of(lived, "segments"), mapping=dict.fromkeys(segments, "5"))
    refused = {"read_group", "positions", "acquire", "commit_ranges", "reserve", "claim", "commit", "finish"}
    assert {*meet(lived)} == refused, "what is in a hole is never read, and then counts as done"


@pytest.mark.parametrize("name", KINDS)
def test_a_key_of_another_kind_is_refused_by_name(lived: World, name: str) -> None:
    lived.redis.delete(key_of(lived, name))
    lived.redis.set(key_of(lived, name), "somebody else's")
    assert look(lived), "somebody has shown it"
    assert meet(lived), "nobody has seen it"
    assert lived.redis.get(key_of(lived, name)) == "somebody else's"


@pytest.mark.parametrize("name", ["lanes", "history"])
def test_damaged_state_that_is_only_shown_is_refused_by_name(lived: World, name: str) -> None:
    lived.redis.set(key_of(lived, name), "somebody else's")
    assert look(lived), "somebody has shown it"


def test_an_intact_group_is_shown(lived: World) -> None:
    assert look(lived) == {}


@pytest.mark.each_server
def test_no_command_shows_replaces_or_deletes_state_of_a_newer_version(lived: World) -> None:
    copy = copies.backup(lived.client, lived.group)
    lived.redis.hset(key_of(lived, "meta"), "schema", "2")
    lived.redis.delete(key_of(lived, "leases"))  # nobody is alive
    refused = look(lived)
    assert refused.keys() == {name for name, _ in looks(lived)}
    assert all("schema '2'" in message for message in refused.values())
    before, operator = dump(lived), OperatorVerbs.of_group(lived.client, lived.group)
    for verb in (
        lambda: copies.restore(lived.client, copy),
        lambda: copies.backup(lived.client, lived.group),
        operator.delete,
        lambda: operator.policies.set_policy({"accept.individual.commit": "false"}),
    ):
        with pytest.raises(StateFormatError, match="schema '2'"):
            verb()
    assert dump(lived) == before


@pytest.mark.parametrize("name", ["meta", "leases", "topics", "segments"])
def test_a_key_of_another_kind_is_neither_replaced_by_a_copy_nor_deleted(lived: World, name: str) -> None:
    copy = copies.backup(lived.client, lived.group)
    for of_members in ("leases", name):
        lived.redis.delete(key_of(lived, of_members))
    lived.redis.set(key_of(lived, name), "somebody else's")
    before, operator = dump(lived), OperatorVerbs.of_group(lived.client, lived.group)
    for verb in (lambda: copies.restore(lived.client, copy), operator.delete):
        with pytest.raises(StateFormatError):
            verb()
    assert dump(lived) == before


HINTS = [
    pytest.param("working", "m-1", "junk", "", id="work that is no slice"),
    pytest.param("working", "m-1", f"orders 0 {UPPER[17:]}-{UPPER[:16]} 5-9;", "", id="work on inverted hashes"),
    pytest.param("working", "m-1", f"orders 0 {LOWER} 9-5;", "", id="work on inverted offsets"),
    pytest.param("working", "m-1", f"orders 0 {LOWER} 5-{HUGE};", "", id="work on offsets too large"),
    pytest.param("working", "m-1", "orders 0 5-9 5-9;", "", id="work on short hashes"),
    pytest.param("working", "m-gone", f"orders 0 {LOWER} 5-9;", "", id="work of a missing member"),
    pytest.param("targets", "m-1", "junk", "look", id="a target that is no offset"),
    pytest.param("targets", "m-1", "orders zero 5;", "look", id="a target of no partition"),
    pytest.param("targets", "m-1", f"orders 0 {HUGE};", "", id="a target too large"),
    pytest.param("targets", "m-gone", "orders 0 5;", "", id="a target of a missing member"),
    pytest.param("applications", "app", "m-gone", "", id="an application of a missing member"),
    pytest.param("applications", "app", "", "", id="an application that is nothing"),
    pytest.param("reserved", "junk", HELD, "reserve", id="a reservation of no offsets"),
    pytest.param("reserved", f"9-5 {WHOLE}", HELD, "reserve", id="a reservation of inverted offsets"),
    pytest.param("reserved", f"5-9,12-13 {WHOLE}", HELD, "reserve", id="a reservation of two offset ranges"),
    pytest.param("reserved", f"5-{HUGE}0 junk", HELD, "reserve", id="a reservation of offsets too large"),
    pytest.param("reserved", "6-9", HELD, "reserve", id="a reservation of no hashes"),
    pytest.param("reserved", "6-9 ", HELD, "reserve", id="a reservation of empty hashes"),
    pytest.param("reserved", "6-9 0-5", HELD, "reserve", id="a reservation of short hashes"),
    pytest.param(
        "reserved", f"6-9 {LOWER}  {UPPER}", HELD, "reserve", id="a reservation with a gap between its hashes"
    ),
    pytest.param("reserved", f"6-9 {UPPER} {LOWER}", HELD, "reserve", id="a reservation of hashes out of order"),
    pytest.param("reserved", f"6-9 {LOWER} {WHOLE}", HELD, "reserve", id="a reservation of hashes that overlap"),
    pytest.param("reserved", f"6-9 {WHOLE}", "junk", "", id="a reservation without a worker"),
    pytest.param("reserved", f"6-9 {WHOLE}", "w held until soon for 5", "", id="a reservation without an end"),
    pytest.param("reserved", f"6-9 {WHOLE}", f"w held until {HUGE} for {HUGE}", "", id="a reservation that never ends"),
    pytest.param("epoch", "0", "junk", "claim", id="a leader epoch that is none"),
    pytest.param("epoch", "zero", "1@5 reset=0 topic=id-1", "extents", id="a leader epoch of no partition"),
    pytest.param("epoch", "0", f"1@{HUGE} reset=0 topic=id-1", "", id="a leader epoch with an end too large"),
    pytest.param("lanes", "m-1", "junk", "read_group", id="lanes that are none"),
]


@pytest.mark.parametrize(("name", "field", "damage", "refuser"), HINTS)
def test_a_damaged_hint_is_refused_by_name_or_does_no_harm(
    lived: World, name: str, field: str, damage: str, refuser: str
) -> None:
    lived.redis.hset(key_of(lived, name), field, damage)
    before = lived.positions()
    assert meet(lived) == [refuser] * bool(refuser)
    lived.redis.hset(key_of(lived, name), field, damage)
    lived.now += 6 * SESSION
    lived.store.poison.strike("m-1")
    lived.store.poison.strike("m-gone")
    assert all(s.hashes in (WHOLE, *cuts(2)) for s in lived.store.poison.strikes()), "a strike that nobody can read"
    assert lived.positions().keys() == before.keys()


@pytest.mark.parametrize("member", ["m-1", "m-gone", "two words", ""])
def test_any_name_among_the_leaving_does_no_harm(lived: World, member: str) -> None:
    lived.redis.sadd(key_of(lived, "leaving"), member)
    assert meet(lived) == [], "some call cannot read it"


@pytest.mark.parametrize("score", ["inf", "-inf", "1e300"])
@pytest.mark.parametrize("name", ["leases", "batches"])
def test_a_time_that_never_comes_harms_no_member(lived: World, name: str, score: str) -> None:
    lived.redis.zadd(key_of(lived, name), {"m-gone": float(score)})
    assert set(meet(lived)) <= {"read_group"}, "only views that show it refuse it"


def test_the_state_of_another_group_under_our_keys_is_refused_and_stays(lived: World) -> None:
    other = World(StoreServer(lived.url, lived.client))
    other.store.positions.create("bb", {"clicks": Topic("clicks", "id-9", (0,))}, {TopicPartition("clicks", 0): 7})
    other.store.members.join(Caller("m-9", "i9"), "", Joining({"host": "h", "topics": "clicks", "capacity": "1"}))
    for name in lived.redis.scan_iter(GroupKeys(lived.group).meta.removesuffix("meta") + "*"):
        lived.redis.delete(name)
    for name in other.redis.scan_iter(GroupKeys(other.group).meta.removesuffix("meta") + "*"):
        ours = str(name).replace(
            GroupKeys(other.group).meta.removesuffix("meta"), GroupKeys(lived.group).meta.removesuffix("meta")
        )
        lived.redis.copy(name, ours)
    refused = meet(lived)
    assert {"look", "acquire", "heartbeat", "authorize", "commit", "commit_ranges", "leave", "release", "finish"} <= {
        *refused
    }
    assert lived.store.positions.stable(["clicks"]) == {TopicPartition("clicks", 0): 7}


@pytest.mark.each_server
def test_the_error_names_the_damaged_entry(lived: World) -> None:
    lived.redis.hset(key_of(lived, "owners"), str(WHOLE), "nobody")
    with pytest.raises(
        StateFormatError, match=r"the entry 0{16}-7f{15} of .*owners:orders:0 is damaged\. Remedy: look at"
    ):
        lived.store.positions.acquire(Caller("m-1", "i1", "aa", "0"), WANTED)


@pytest.fixture
def sharing(world: World) -> World:
    """A group without order: one member holds 5-9 and another one 10-14."""
    world.found(p0=5, p1=5)
    world.logs_reach(20)
    for member in ("m-1", "m-2"):
        joining = Joining({"host": "h", "topics": "orders"}, ordering="none", next_nonce="aa")
        answer = world.store.members.join(Caller(member, "i1"), "", joining)
        me = Caller(member, "i1", answer.seen.nonce, "0")
        world.store.positions.hand_out(me, {TP: 20}, 5, 5)
    return world


def without_order(world: World) -> Iterator[tuple[str, Callable[[], object]]]:
    """The calls of a member without order, and the views of its group."""
    store, me = world.store, Caller("m-1", "i1", "aa", "0")
    lanes = {TP: (lane("aa.1", 5, 10),)}
    end = StreamOffset("g", "m-1", 0, {"orders": "id-1"}, lanes, by_key=False)
    yield from looks(world)
    yield "authorize", lambda: store.positions.authorize(me, end)
    yield "commit", lambda: store.positions.commit(me, end, completed(end))
    yield "hand_out", lambda: store.positions.hand_out(me, {TP: 20}, 5, 5)
    yield "leave", lambda: store.members.leave(me, {OTHER: (), TP: ()})


HANDED = [
    pytest.param("junk", "aa.1 m-1", id="a slice of no offsets"),
    pytest.param("", "aa.1 m-1", id="an empty slice"),
    pytest.param("19-15", "aa.1 m-1", id="a slice of inverted offsets"),
    pytest.param("015-19", "aa.1 m-1", id="a slice with zeros in front"),
    pytest.param("15", "aa.1 m-1", id="a slice of one number"),
    pytest.param("15-16-17", "aa.1 m-1", id="a slice with two ends"),
    pytest.param("15-16 18-19", "aa.1 m-1", id="two slices in one"),
    pytest.param(f"15-{HUGE}", "aa.1 m-1", id="a slice up to forty digits"),
    pytest.param("15-9223372036854775807", "aa.1 m-1", id="a slice up to 2^63"),
    pytest.param("9-10", "aa.3 m-1", id="a slice across two others"),
    pytest.param("5-9", "", id="a slice of nobody"),
    pytest.param("5-9", "m-1", id="a slice without a lane epoch"),
    pytest.param("5-9", "aa.1", id="a slice without a member"),
    pytest.param("5-9", "aa.x m-1", id="a slice of a lane epoch that is none"),
    pytest.param("5-9", "aa.1 m-1 m-2", id="a slice of two members"),
]


@pytest.mark.each_server
@pytest.mark.parametrize(("field", "damage"), HANDED)
def test_a_damaged_slice_is_refused_by_name_and_nothing_is_written(sharing: World, field: str, damage: str) -> None:
    key = GroupKeys(sharing.group).handed(TP)
    sharing.redis.hset(key, field, damage)
    refused: list[str] = []
    for name, verb in without_order(sharing):
        with unchanged_if_refused(sharing, name, refused):
            verb()
    views = {"describe", "gaps", "owner", "top", "parked", "events"}
    assert {*refused} == {*views, "authorize", "commit", "hand_out", "leave"}
    assert sharing.redis.hget(key, field) == damage


@pytest.mark.each_server
def test_slices_of_another_kind_are_refused_by_name(sharing: World) -> None:
    key = GroupKeys(sharing.group).handed(TP)
    sharing.redis.delete(key)
    sharing.redis.set(key, "somebody else's")
    refused: list[str] = []
    for name, verb in without_order(sharing):
        with unchanged_if_refused(sharing, name, refused):
            verb()
    assert {"describe", "authorize", "commit", "hand_out", "leave"} <= {*refused}
    assert sharing.redis.get(key) == "somebody else's"


@pytest.mark.each_server
def test_the_error_names_the_damaged_slice(sharing: World) -> None:
    sharing.redis.hset(GroupKeys(sharing.group).handed(TP), "5-9", "nobody")
    with pytest.raises(StateFormatError, match=r"the slice 5-9 of .*handed:orders:0 is damaged\. Remedy: look at"):
        sharing.store.positions.hand_out(Caller("m-1", "i1", "aa", "0"), {TP: 20}, 5, 5)


@pytest.mark.each_server
def test_slices_without_damage_are_accepted(sharing: World) -> None:
    refused: list[str] = []
    for name, verb in without_order(sharing):
        with unchanged_if_refused(sharing, name, refused):
            verb()
    assert refused == []
