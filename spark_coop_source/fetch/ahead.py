"""Works ahead in a thread: it makes the next items while the caller uses an item.

    thread    |=a=|=b=|=c=|     |=d=|         at most `DEPTH` ahead
    caller        |==use a==|==use b==|==     output to the JVM, or the user's function

Knows iterators; nothing of their items. Runs in executor workers.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TypeVar

Item = TypeVar("Item")

DEPTH = 2
"""Most items finished or in work while the caller uses one."""


def ahead(making: Callable[[Callable[[], bool]], Generator[Item, None, None]]) -> Iterator[Item]:
    """The items of `making`, in order, made in a separate thread, which ends with this iterator.

    `making` gets a function that returns True when no more items are wanted. Its error is raised after its items.
    """
    stopped = Event()
    items = making(stopped.is_set)
    thread = ThreadPoolExecutor(1, "coop-kafka-ahead")
    try:
        coming = deque(thread.submit(next, items, None) for _ in range(DEPTH))
        while (item := coming.popleft().result()) is not None:
            coming.append(thread.submit(next, items, None))
            yield item
    finally:
        stopped.set()
        thread.shutdown(cancel_futures=True)
        items.close()
