"""Copies with one letter wrong, drawn with a fixed seed: `restore` refuses each, or a member can live on with it."""

import random
from contextlib import suppress
from dataclasses import replace

import pytest

from coordinator.errors import CoopKafkaError, StateFormatError
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.commits import CommitVerbs
from coordinator.redis.snapshot import read_group
from coordinator.tools.operations import copies
from coordinator.tools.operations.copies import GroupCopy
from coordinator.tools.operations.gaps import gaps
from coordinator.tools.operations.views import view
from coordinator.values.ranges import WHOLE, OffsetRange
from coordinator.values.subscription import Topic
from rich_groups import live_richly
from store_world import NO_MEMBER, SESSION, World

pytestmark = pytest.mark.long
ALPHABET = "0189 -,.@=:afAFx;\x00"
"""Letters that mean something in Redis' texts, and some that do not."""


def mutated(text: str, chance: random.Random) -> str:
    """The text with one letter replaced, left out or put in."""
    at, letter, way = chance.randrange(len(text) + 1), chance.choice(ALPHABET), chance.randrange(3)
    return text[:at] + (letter if way else "") + text[at + (way < 2) :]


def one_letter_wrong(copy: GroupCopy, chance: random.Random) -> GroupCopy:
    """The copy with one letter of one field's name or value changed."""
    name = chance.choice(sorted(copy.keys))
    field = chance.choice(sorted(copy.keys[name]))
    fields = dict(copy.keys[name])
    if chance.random() < 0.3:
        fields[mutated(field, chance)] = fields.pop(field)
    else:
        fields[field] = mutated(fields[field], chance)
    return replace(copy, keys={**copy.keys, name: fields})


def live_on(world: World) -> None:
    """The views, then a member's calls: recover, create new positions, join, acquire, commit."""
    store, now = world.store, read_group(world.client, world.group)
    topics = {name: Topic(name, known.id, tuple(range(known.partitions))) for name, known in now.topics.items()}
    (
        view(world.group, now),
        gaps(now),
        store.poison.strikes(),
        store.positions.growths(),
        store.policies.policy(),
        store.positions.extents(list(topics)),
    )
    store.positions.recover(
        NO_MEMBER, "bb", "a copy was loaded", store.positions.reset_epoch(), topics, dict.fromkeys(now.stable)
    )
    world.lapse(SESSION + 1)
    me = world.join(incarnation=f"i-{world.now}")
    store.positions.create("", topics, dict.fromkeys(now.stable, 0))
    store.members.look(me)
    for tp, owned in store.positions.acquire(me, dict.fromkeys(now.stable, (WHOLE,))).value.ownership.items():
        commits = CommitVerbs(
            ScriptCalls(
                world.client, world.group, session_ms=SESSION, longest_ms=1, retention_ms=1, now=lambda: world.now
            )
        )
        commits.commit_ranges(commits.standing(me), tp, owned, (OffsetRange(90, 91),), 9)
    store.poison.strike(me.member)
    store.members.leave(me, dict.fromkeys(now.stable, ()))


def test_a_member_can_live_on_with_every_copy_that_is_taken(world: World) -> None:
    """One letter is changed at a time. A copy that is not refused works: reads, recovery and commits succeed."""
    live_richly(world)
    sound, chance, taken = copies.backup(world.client, world.group), random.Random(14), 0
    for _ in range(250):
        copy = one_letter_wrong(sound, chance)
        with suppress(StateFormatError):
            copy.check()
            taken += 1
            live_on_with(world, copy)
    assert 25 < taken < 225, "both are common"


def live_on_with(world: World, copy: GroupCopy) -> None:
    copies.restore(world.client, copy)
    try:
        live_on(world)
    except CoopKafkaError as error:
        raise AssertionError(f"a copy was taken that nobody can use: {error}") from error
