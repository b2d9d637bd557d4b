"""Works ahead in a thread: what comes next is made while what came before is used.

    thread    |=a=|=b=|=c=|     |=d=|         at most `DEPTH` ahead
    caller        |==use a==|==use b==|==     handing over to the JVM, or the user's function

Knows iterators; nothing of what they give. Runs in executor workers.
"""

from collections import deque
from collections.abc import Callable, Generator, Iterator
from concurrent.futures import ThreadPoolExecutor
from threading import Event
from typing import TypeVar

Item = TypeVar("Item")

DEPTH = 2
"""Items that are made, or being made, while one is used."""


def ahead(making: Callable[[Callable[[], bool]], Generator[Item, None, None]]) -> Iterator[Item]:
    """What `making` yields, in order, made in one thread of its own, which has ended when this ends or is closed.

    `making` is given a function that tells when no more is wanted. Raises what it raises, after all that came before.
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
