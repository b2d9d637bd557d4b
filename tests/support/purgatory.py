"""Workers of one member of a `World`, whose ordered commits wait for one another."""

from concurrent.futures import Future, ThreadPoolExecutor

from coordinator.commits.commit_api import CommitApi, Committed
from coordinator.commits.ordered_commits import OrderedCommits
from coordinator.redis.keys import GroupKeys
from coordinator.values.ranges import OffsetRange
from store_world import TP, WANTED, World

LONG_MS = 60_000


class Purgatory:
    """A partition with stable offset 39 as the draft KIP prints it, and workers of the member that owns it."""

    def __init__(self, world: World) -> None:
        self.world = world
        world.found(p0=40)
        world.logs_reach()
        world.store.positions.acquire(world.join(), WANTED)
        self.commits = CommitApi.of_member(world.url, world.group, "m-1")
        self._threads = ThreadPoolExecutor()

    def worker(self, name: str, lease_ms: int = LONG_MS) -> OrderedCommits:
        return OrderedCommits(self.commits, name, lease_ms)

    def commits_meanwhile(self, worker: OrderedCommits, offsets: OffsetRange) -> Future[Committed]:
        return self._threads.submit(worker.commit, TP, offsets)

    @property
    def shown(self) -> dict[str, str]:
        """The reservations in Redis: their offsets, worker and state."""
        with self.world.client.reading() as reading:
            found = reading.hgetall(GroupKeys(self.world.group).reserved(TP))
        return {rectangle.split()[0]: value.partition(" until")[0] for rectangle, value in found.items()}

    @property
    def stable(self) -> int:
        """The last offset done."""
        return self.world.store.positions.stable(["orders"])[TP] - 1

    def close(self) -> None:
        self._threads.shutdown()
        self.commits.close()
