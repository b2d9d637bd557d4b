"""Fair shares in proportion to capacity, whoever may take from which pool (spec 4.1).

A pool is an amount that a set of members may take from: the partitions of all topics with the same
subscribers. With one pool the shares are plain proportions. With several, a member that may take from
many pools leaves the narrow ones to those who have nothing else:

    pool 1 (6)  A B      fair is 4 each: B 4 and A 2 of pool 1; A 2 and C 4 of pool 2
    pool 2 (6)  A C

The densest pools (most amount per capacity of all who may take from them) come first; their members take
nothing from the others, which are settled among the rest in the same way. Integers only, exact.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from coordinator.assignors.forest import Given, Held, prune


@dataclass(frozen=True, slots=True)
class Pool:
    """An amount, and who may take from it, by id."""

    amount: int
    members: tuple[str, ...]


def fair_shares(capacity: Mapping[str, int], pools: Sequence[Pool], held: Held) -> Given:
    """Pool number -> member -> its share; the totals per member do not depend on what was `held` before.

    A member's total is its exact proportion, less than 1 up or down; the parts are a forest.
    """
    given: Given = {i: {} for i in range(len(pools))}
    left, busy = {i for i, pool in enumerate(pools) if pool.amount and pool.members}, set[str]()
    while left:
        flow = _densest(capacity, pools, left, busy)
        given |= _whole_numbers(capacity, pools, flow, held)
        left -= flow.left.keys()
        busy |= flow.room.keys()
    prune(given, {i: held.get(i, {}) for i in given})
    return given


@dataclass(slots=True)
class _Flow:
    """Amounts on their way from pools to members with room."""

    left: dict[int, int]
    room: dict[str, int]
    takers: dict[int, list[str]]
    given: Given = field(default_factory=dict)
    pools_of: dict[str, list[int]] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self.given = {i: {} for i in self.left}
        self.pools_of = {m: [] for m in self.room}
        for i, members in self.takers.items():
            for m in members:
                self.pools_of[m].append(i)

    def give(self, i: int, member: str, amount: int) -> None:
        """Give as much of `amount` as the pool has left and the member has room for."""
        amount = min(amount, self.left[i], self.room[member])
        if amount > 0:
            self.left[i] -= amount
            self.room[member] -= amount
            self.given[i][member] = self.given[i].get(member, 0) + amount

    def run(self) -> set[int]:
        """Give all that can be given; the pools that were searched in vain when nothing more can be."""
        for i, members in self.takers.items():
            for m in members:
                self.give(i, m, self.left[i])
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
        path.reverse()  # pool, member, pool, member, ...: each member passes on to the next pool what it had of it
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


def _densest(capacity: Mapping[str, int], pools: Sequence[Pool], left: set[int], busy: set[str]) -> _Flow:
    """The pools with the most amount per capacity, as a flow that empties them at that level for all."""
    chosen = left
    while True:
        takers = {i: [m for m in pools[i].members if m not in busy] for i in sorted(chosen)}
        members = sorted({m for ms in takers.values() for m in ms})
        amount, total = sum(pools[i].amount for i in chosen), sum(capacity[m] for m in members)
        flow = _Flow({i: pools[i].amount * total for i in takers}, {m: capacity[m] * amount for m in members}, takers)
        stuck = flow.run() if len(takers) > 1 else set()
        if not stuck:
            return flow
        chosen = stuck


def _whole_numbers(capacity: Mapping[str, int], pools: Sequence[Pool], settled: _Flow, held: Held) -> Given:
    """The shares of one density in whole numbers, starting from what is held."""
    amount, total = sum(pools[i].amount for i in settled.left), sum(capacity[m] for m in settled.room)
    room = {m: capacity[m] * amount // total for m in settled.room}
    flow = _Flow({i: pools[i].amount for i in settled.left}, room, settled.takers)
    for i in settled.left:
        for m in settled.takers[i]:
            flow.give(i, m, held.get(i, {}).get(m, 0))
    flow.run()
    for m in sorted(room, key=lambda m: (-(capacity[m] * amount % total), m)):
        if not any(flow.left.values()):
            break
        flow.room[m] += 1
        flow.run()
    return flow.given
