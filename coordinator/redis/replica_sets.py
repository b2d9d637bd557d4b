"""The members of replica sets in Redis, and the choice of a set. Runs in the reader process, on its main thread."""

from collections.abc import Collection, Iterable, Sequence
from contextlib import suppress
from typing import NamedTuple

from coordinator.assignment.replica_sets import SEPARATOR, Sets, lightest
from coordinator.errors import UnknownGroupError
from coordinator.redis.calls import ScriptCalls
from coordinator.redis.client import RedisClient
from coordinator.redis.keys import GroupKeys
from coordinator.redis.policies import RedisPolicies
from coordinator.redis.snapshot import read_group
from coordinator.values.ranges import is_number


class Members(NamedTuple):
    """The members with a lease."""

    sets: Sets
    staying: frozenset[str]  # that cannot move: they leave, hang in a batch, or run with AvailableNow


def members_of(client: RedisClient, names: Iterable[str]) -> Members:
    """The members with a lease of each set; a set that has never had one has none."""
    sets, staying = dict[str, dict[str, int]](), set[str]()
    for name in names:
        sets[name] = {}
        with suppress(UnknownGroupError):
            state = read_group(client, name)
            live = [member for member, end in state.leases_ms.items() if end >= state.now_ms]
            sets[name] = {member: _capacity(state.members[member].get("capacity", "")) for member in live}
            staying |= state.leaving | {m for m, at in state.hung_ms.items() if at < state.now_ms}
            with client.reading() as redis:
                staying |= redis.hgetall(GroupKeys(name).targets).keys()
    return Members(sets, frozenset(staying))


def _capacity(text: str) -> int:
    return int(text) if is_number(text) else 1  # the assignment refuses it by name


def chosen_set(client: RedisClient, names: Sequence[str], hold_ms: int) -> str:
    """The set that a new member joins.

    It holds the set for `hold_ms`: members that start at once would all choose the same one. A set that another member
    holds counts as one with a member. If all sets are held, the lightest one is chosen.
    """
    sets = members_of(client, names).sets
    open_sets = dict(sets)
    while open_sets:
        name = lightest(open_sets)
        with client.reading() as redis:
            if sets[name] or redis.set(GroupKeys(name).chosen, "1", nx=True, px=hold_ms):
                return name
        del open_sets[name]
    return lightest(sets)


def adopt_policies(client: RedisClient, names: Sequence[str], name: str) -> None:
    """Give a replica set the policies of the first one that it lacks: it may be younger than they are.

    rule: one-member-a-set; `coop-kafka policy` changes the policies of all sets that exist.
    """
    first, chosen = (RedisPolicies(ScriptCalls(client, of)) for of in (names[0], name))
    if name != names[0]:
        chosen.adopt(first)


def siblings(group: str, groups: Iterable[str]) -> tuple[str, ...]:
    """The other replica sets of a group among the names of all groups, in order of their numbers."""
    numbers = (name.removeprefix(group + SEPARATOR) for name in groups if name.startswith(group + SEPARATOR))
    return tuple(f"{group}{SEPARATOR}{n}" for n in sorted(int(n) for n in numbers if is_number(n)))


def first_of(name: str, groups: Collection[str]) -> str | None:
    """The group of which this is another replica set, among the names of all groups; None if it is none."""
    group, separator, number = name.rpartition(SEPARATOR)
    return group if separator and is_number(number) and group in groups else None
