"""A broker that names no topic ids: a real one behind a proxy that caps the versions which it says it speaks.

    client  --->  proxy  --->  broker       all bytes as they are, but the answer to ApiVersions

Clients then speak the protocol of Kafka 2.7. The broker advertises the proxy as its address.
"""

import asyncio
import struct
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import servers

MOST = {1: 12, 3: 9}
"""Fetch and Metadata, the last versions without topic ids (KIP-516)."""

_API_VERSIONS = 18
_HEAD = struct.Struct(">hhi")  # api key, its version, correlation id


def capped(answer: bytes, version: int) -> bytes:
    """An answer to ApiVersions of this version, correlation id first, with no highest version above `MOST`."""
    made = bytearray(answer)
    at, size = (7, 7) if version >= 3 else (10, 6)  # behind correlation id, error code and count; of one entry
    count = made[6] - 1 if version >= 3 else int.from_bytes(made[6:10], "big")
    if version >= 3 and made[6] >= 0x80:  # a count of two bytes
        count, at = (made[6] & 0x7F | made[7] << 7) - 1, 8
    for place in range(at, at + count * size, size):
        key, _, highest = struct.unpack_from(">hhh", made, place)
        struct.pack_into(">h", made, place + 4, min(highest, MOST.get(key, highest)))
    return bytes(made)


async def _frame(reader: asyncio.StreamReader) -> bytes:
    return await reader.readexactly(int.from_bytes(await reader.readexactly(4), "big"))


async def _pump(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, asked: dict[int, int], *, answers: bool
) -> None:
    try:
        while True:
            frame = await _frame(reader)
            if answers:
                asks = asked.pop(int.from_bytes(frame[:4], "big"), None)
                frame = frame if asks is None else capped(frame, asks)
            else:
                key, version, correlation = _HEAD.unpack_from(frame)
                asked.update({correlation: version} if key == _API_VERSIONS else {})
            writer.write(len(frame).to_bytes(4, "big") + frame)
            await writer.drain()
    except (OSError, asyncio.IncompleteReadError):
        pass
    finally:
        writer.close()


async def _serve(port: int, broker: int, started: threading.Event, stop: asyncio.Event) -> None:
    async def connected(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            to_reader, to_writer = await asyncio.open_connection(servers.HOST, broker)
        except OSError:
            writer.close()
            return
        asked: dict[int, int] = {}
        there, back = _pump(reader, to_writer, asked, answers=False), _pump(to_reader, writer, asked, answers=True)
        await asyncio.gather(there, back)

    async with await asyncio.start_server(connected, servers.HOST, port, limit=1 << 26):
        started.set()
        await stop.wait()


@contextmanager
def proxy(port: int, broker: int) -> Iterator[None]:
    """A proxy at `port` of this host to a broker at another one, in a thread of its own; else `RuntimeError`."""
    loop, stop, started, failed = asyncio.new_event_loop(), asyncio.Event(), threading.Event(), list[OSError]()

    def serve() -> None:
        try:
            loop.run_until_complete(_serve(port, broker, started, stop))
        except OSError as error:
            failed.append(error)
        finally:
            started.set()

    thread = threading.Thread(target=serve)
    thread.start()
    started.wait()
    try:
        if failed:
            raise RuntimeError(f"the proxy cannot listen: {failed[0]}")
        yield
    finally:
        loop.call_soon_threadsafe(stop.set)
        thread.join()
        loop.close()


@contextmanager
def broker(folder: Path) -> Iterator[str]:
    """The address of a broker without topic ids, which keeps its data in `folder`."""
    port, behind = servers.free_ports(2)
    advertised = f"advertised.listeners=PLAIN://{servers.HOST}:{port}"
    with proxy(port, behind):
        started = servers.start_broker(folder, more=(advertised,), port=behind)
        try:
            yield f"{servers.HOST}:{port}"
        finally:
            started.stop()
