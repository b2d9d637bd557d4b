"""Copies with one letter wrong, drawn with a fixed seed: `restore` refuses each, or a member can live on with it."""

import random
from contextlib import suppress
from dataclasses import replace

import pytest

from coordinator.errors import StateFormatError
from coordinator.tools.operations import copies
from coordinator.tools.operations.copies import GroupCopy
from rich_groups import live_on_with, live_richly
from store_world import World

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
