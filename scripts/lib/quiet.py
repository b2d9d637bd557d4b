"""Loggers that a command has nothing to hear of."""

import logging
from collections.abc import Iterator
from contextlib import contextmanager


@contextmanager
def quiet(*names: str) -> Iterator[None]:
    """These loggers log nothing within the block, but what is critical."""
    before = {each: each.level for each in map(logging.getLogger, names)}
    for each in before:
        each.setLevel(logging.CRITICAL)
    try:
        yield
    finally:
        for each, level in before.items():
            each.setLevel(level)
