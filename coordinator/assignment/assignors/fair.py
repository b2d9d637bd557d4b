"""Fair shares in proportion to capacity, also if members subscribe to different topics.

A pool is the partitions of all topics with the same subscribers. With one pool the shares are plain proportions. With
several, a member of many pools leaves the narrow pools to members that have no other:

    pool 1 (6)  A B      fair is 4 each: B 4 and A 2 of pool 1; A 2 and C 4 of pool 2
    pool 2 (6)  A C

The densest pools, with the most amount for each capacity of their members, come first. Their members take nothing from
the other pools, which are shared among the rest in the same way. Amounts are whole numbers of a unit in which each
share is exact: so no member gets a splinter by rounding.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from coordinator.assignment.assignors.forest import Given, Held, prune
from coordinator.values.ranges import HASH_MAX

SPACE = HASH_MAX + 1
FINER = 1024
"""Units in the smallest difference between shares: earlier parts need not be a multiple of it."""


@dataclass(frozen=True, slots=True)
class Pool:
    """Some partitions, and the ids of their subscribers."""

    partitions: int
    members: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Shares:
    """The amount of a pool for each member; a whole partition is `whole` units."""

    given: dict[str, int] = field(default_factory=dict)
    whole: int = 1


def units(hashes: int, whole: int) -> int:
    """The nearest number of units for a number of hashes."""
    return (hashes * whole + SPACE // 2) // SPACE


def fair_shares(capacity: Mapping[str, int], pools: Sequence[Pool], held: Held) -> list[Shares]:
    """The shares of each pool as a forest, near the hashes `held` before, by the number of the pool.

    A member's total over all pools does not depend on `held`.
    """
    shares = {i: Shares() for i in range(len(pools))}
    left, busy = {i for i, pool in enumerate(pools) if pool.partitions and pool.members}, set[str]()
    while left:
        level = _densest(capacity, pools, left, busy)
        for i, given in _near(level, held).items():
            shares[i] = Shares(given, level.whole)
        left -= level.takers.keys()
        busy |= level.capacity.keys()
    return [shares[i] for i in range(len(pools))]


@dataclass(frozen=True, slots=True)
class _Level:
    """Pools whose members all get the same amount per capacity."""

    partitions: Mapping[int, int]
    capacity: Mapping[str, int]
    takers: Mapping[int, Sequence[str]]

    @property
    def whole(self) -> int:
        """Units of a partition: each member's share is a multiple of `FINER`."""
        return sum(self.capacity.values()) * FINER

    def flow(self) -> "_Flow":
        """Nothing assigned yet; room for each member's exact proportion."""
        partitions, whole = sum(self.partitions.values()), self.whole
        room = {m: c * partitions * FINER for m, c in self.capacity.items()}
        return _Flow({i: n * whole for i, n in self.partitions.items()}, room, self.takers)


@dataclass(slots=True)
class _Flow:
    """Amounts on their way from pools to members with room."""

    left: dict[int, int]
    room: dict[str, int]
    takers: Mapping[int, Sequence[str]]
    given: Given = field(default_factory=dict)
    pools_of: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.given = {i: {} for i in self.left}
        self.pools_of = {m: [] for m in self.room}
        for i, members in self.takers.items():
            for m in members:
                self.pools_of[m].append(i)

    def assign(self, i: int, member: str, amount: int) -> None:
        """Assign as much of `amount` as the pool has left and the member has room for."""
        amount = min(amount, self.left[i], self.room[member])
        if amount > 0:
            self.left[i] -= amount
            self.room[member] -= amount
            self.given[i][member] = self.given[i].get(member, 0) + amount

    def run(self) -> set[int]:
        """Distribute all amounts that can be; the pools whose search for room failed at the end."""
        for i, members in self.takers.items():
            for m in members:
                self.assign(i, m, self.left[i])
        while True:
            came, found = self._search()
            if found is None:
                return {node for node in came if isinstance(node, int)}
            self._shift(came, found)

    def _search(self) -> tuple[dict[int | str, int | str | None], str | None]:
        queue: list[int | str] = [i for i, amount in self.left.items() if amount]
        came: dict[int | str, int | str | None] = dict.fromkeys(queue)
        for node in queue:
            if isinstance(node, str) and self.room[node]:
                return came, node
            for other in self._next(node):
                if other not in came:
                    came[other] = node
                    queue.append(other)
        return came, None

    def _next(self, node: int | str) -> Sequence[int | str]:
        if isinstance(node, int):
            return self.takers[node]
        return [i for i in self.pools_of[node] if node in self.given[i]]

    def _shift(self, came: dict[int | str, int | str | None], found: str) -> None:
        path: list[int | str] = [found]
        while (before := came[path[-1]]) is not None:
            path.append(before)
        path.reverse()  # pool, member, pool, member, ...: each member passes its part on to the next pool
        pools, members = [n for n in path if isinstance(n, int)], [n for n in path if isinstance(n, str)]
        back = list(zip(pools[1:], members, strict=False))
        amount = min(self.left[pools[0]], self.room[found], *(self.given[i][m] for i, m in back))
        self.left[pools[0]] -= amount
        self.room[found] -= amount
        for i, m in zip(pools, members, strict=True):
            self.given[i][m] = self.given[i].get(m, 0) + amount
        for i, m in back:
            self.given[i][m] -= amount
            if not self.given[i][m]:
                del self.given[i][m]


def _densest(capacity: Mapping[str, int], pools: Sequence[Pool], left: set[int], busy: set[str]) -> _Level:
    """The pools with the most amount for each capacity of their members."""
    chosen = left
    while True:
        takers = {i: [m for m in pools[i].members if m not in busy] for i in sorted(chosen)}
        members = sorted({m for ms in takers.values() for m in ms})
        level = _Level({i: pools[i].partitions for i in takers}, {m: capacity[m] for m in members}, takers)
        stuck = level.flow().run() if len(takers) > 1 else set()
        if not stuck:
            return level
        chosen = stuck


def _near(level: _Level, held: Held) -> Given:
    """The level's shares, starting from the parts held before."""
    flow, whole = level.flow(), level.whole
    before = {i: {m: units(hashes, whole) for m, hashes in held.get(i, {}).items()} for i in level.takers}
    for i, members in level.takers.items():
        for m in members:
            flow.assign(i, m, before[i].get(m, 0))
    flow.run()
    prune(flow.given, before)
    return flow.given
