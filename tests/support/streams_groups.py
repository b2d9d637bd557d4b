"""Streams groups of Kafka (KIP-1071). No Python client makes one, so the request is written by hand."""

import socket
import struct
import uuid
from contextlib import closing

from kafka.protocol.api_key import ApiKey

from topics import Kafka

NONE = b"\0"  # a text or a list
NO_TAGS = b"\0"
WAIT_S = 10


def join(kafka: Kafka, group: str, topic: str) -> None:
    """The heartbeat of a first member, which makes the group."""
    subtopology = b"".join([_text("0"), _list(_text(topic)), *[_list()] * 5, NO_TAGS])
    topology = b"\1" + struct.pack(">i", 1) + _list(subtopology) + NO_TAGS
    epochs, timeout = struct.pack(">ii", 0, 0), struct.pack(">i", 30_000)
    tasks = _list() * 3  # active, standby, warm-up
    member = _text(group) + _text(str(uuid.uuid4())) + epochs + NONE + NONE + timeout + topology + tasks
    rest = _text("process") + b"\xff" + _list() + NONE + NONE + b"\0" + NO_TAGS
    header = struct.pack(">hhih", ApiKey.StreamsGroupHeartbeat, 0, 1, 4) + b"test" + NO_TAGS
    request = header + member + rest
    host, _, port = kafka.bootstrap.partition(":")
    with closing(socket.create_connection((host, int(port)), WAIT_S)) as broker:
        broker.sendall(struct.pack(">i", len(request)) + request)
        answer = broker.recv(65_536)
    (code,) = struct.unpack(">h", answer[13:15])  # after size, correlation id, tags and the throttle time
    assert code == 0, f"the broker refuses a streams group with code {code}: {answer!r}"


def _text(text: str) -> bytes:
    return bytes([len(text) + 1]) + text.encode()


def _list(*items: bytes) -> bytes:
    return bytes([len(items) + 1]) + b"".join(items)
