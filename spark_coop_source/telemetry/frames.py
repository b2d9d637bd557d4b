"""Frames on the connection of a task: a signed text of known length, so that each side accepts the other one only.

    4 bytes   the length of the rest, big endian
    16 bytes  HMAC-SHA256 of the text, cut, with the key that the input partition carried
    the text

Knows bytes; nothing of their meaning. Used by executors (`link`) and the reader process (`driver.task_server`).
"""

import hmac
from io import BufferedIOBase

MOST_BYTES = 8 * 1024 * 1024
"""Most bytes of a frame: the ends of a task that reads 50,000 slices."""

_SIGNED, _LENGTH = 16, 4


def framed(text: bytes, key: bytes) -> bytes:
    """The frame of a text."""
    return (len(text) + _SIGNED).to_bytes(_LENGTH) + _signature(text, key) + text


def next_text(stream: BufferedIOBase, key: bytes) -> bytes | None:
    """The text of the next frame; None at the end of the stream, and for a frame that the key did not sign."""
    head = stream.read(_LENGTH)
    length = int.from_bytes(head)
    if len(head) < _LENGTH or not _SIGNED <= length <= MOST_BYTES:
        return None
    frame = stream.read(length)
    signature, text = frame[:_SIGNED], frame[_SIGNED:]
    return text if len(frame) == length and hmac.compare_digest(signature, _signature(text, key)) else None


def _signature(text: bytes, key: bytes) -> bytes:
    return hmac.digest(key, text, "sha256")[:_SIGNED]
