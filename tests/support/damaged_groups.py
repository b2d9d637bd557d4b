"""A sound group with a member at work, ways to damage its Redis state, and what a member and the views make of it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import cast

import redis

from applications import Application
from coordinator.assignment.settings import GroupSettings
from coordinator.errors import CoopKafkaError
from coordinator.member.limits import Limits
from coordinator.progress.stream_offset import StreamOffset
from coordinator.redis.client import RedisClient
from coordinator.redis.keys import GroupKeys
from coordinator.redis.snapshot import read_group
from coordinator.redis.verb import Reply
from coordinator.tools.operations.gaps import gaps
from coordinator.tools.operations.group_look import look_at
from coordinator.tools.operations.top_view import top_view
from coordinator.tools.operations.views import view
from coordinator.values.ranges import WHOLE
from coordinator.values.subscription import TopicPartition, Topics
from group_services import Group, slices_read

RECORDS, PART = 15, 5
SESSION_MS = 250
STEPS, SCRIPTS = 40, 400  # far more than any row needs; a loop without a wait makes thousands
HUGE = "9" * 40
LOWER, UPPER = "0000000000000000-3fffffffffffffff", "4000000000000000-7fffffffffffffff"


class Counting(RedisClient):
    """A client that ends what would never end."""

    def __init__(self, url: str) -> None:
        super().__init__(url)
        self.ran = 0

    def run(self, verb: str, keys: Sequence[str], args: Sequence[str]) -> Reply:
        self.ran += 1
        assert self.ran < SCRIPTS, f"a loop: {self.ran} scripts, {verb} again"
        return super().run(verb, keys, args)


@dataclass
class Case:
    """A group at work, and the ways to hurt it."""

    group: Group
    tp: TopicPartition
    client: Counting
    raw: redis.Redis
    member: str = ""

    def stable(self) -> int:
        return int(str(self.group.redis.hget(self.key("stable"), "0") or 0))

    def events(self) -> list[str]:
        entries = cast(list[tuple[str, dict[str, str]]], self.group.redis.xrange(self.key("events")))
        return [f"{fields['event']}: {fields['why']}" for _, fields in entries]

    def restore(self, copy: Mapping[str, bytes]) -> None:
        """The operator's action after an error that asks for it."""
        self.raw.delete(*self.group.keys)
        for key, value in copy.items():
            self.raw.restore(key, 0, value)

    def key(self, name: str) -> str:
        keys = GroupKeys(self.group.name)
        of_partition = {"segments": keys.segments, "owners": keys.owners, "ics": keys.ics}
        of_topic = {"stable": keys.stable, "end": keys.end, "epoch": keys.epoch}
        if name in of_partition:
            return of_partition[name](self.tp)
        if name in of_topic:
            return of_topic[name](self.tp.topic)
        return keys.member(self.member) if name == "member" else str(getattr(keys, name))

    def text(self, text: str) -> str:
        words = {"$TOPIC": self.tp.topic, "$MEMBER": self.member, "$NAME": self.group.name}
        words["$GROUP"] = GroupKeys(self.group.name).meta.removesuffix(":meta")
        for word, meaning in words.items():
            text = text.replace(word, meaning)
        return text


Damage = Callable[[Case], object]


def hset(name: str, field: str, value: str) -> Damage:
    return lambda case: case.group.redis.hset(case.key(name), case.text(field), case.text(value))


def hdel(name: str, field: str) -> Damage:
    return lambda case: case.group.redis.hdel(case.key(name), case.text(field))


def delete(*names: str) -> Damage:
    return lambda case: case.group.redis.delete(*map(case.key, names))


def zadd(name: str, member: str, score: float) -> Damage:
    return lambda case: case.group.redis.zadd(case.key(name), {case.text(member): score})


def sadd(name: str, member: str) -> Damage:
    return lambda case: case.group.redis.sadd(case.key(name), case.text(member))


def both(*damages: Damage) -> Damage:
    return lambda case: [damage(case) for damage in damages]


def other_kind(name: str) -> Damage:
    def damage(case: Case) -> None:
        case.group.redis.delete(case.key(name))
        case.group.redis.set(case.key(name), "somebody else's")

    return damage


def application(case: Case, done: StreamOffset | None = None) -> Application:
    settings = GroupSettings(case.group.name, capacity=2, session_ms=SESSION_MS, growth_grace_ms=0)
    service = case.group.started(Topics((case.tp.topic,)), settings=settings)
    return Application(service, done or StreamOffset(case.group.name))


def step(app: Application) -> None:
    app.service.heartbeat()
    end = app.service.next_offset(app.done, Limits(max_offsets=PART))
    if end is not None:
        app.read += slices_read(app.service, end)
        app.done = end


def all_read(app: Application) -> bool:
    """Whether each offset was read with all its hashes."""
    sizes = dict.fromkeys(range(RECORDS), 0)
    for s in app.read:
        for offset in range(s.offsets.start, s.offsets.until):
            sizes[offset] += s.hashes.size
    return all(size >= WHOLE.size for size in sizes.values())


def to_the_end(case: Case, app: Application) -> None:
    """Go on until the rest is read and committed, and leave."""
    for _ in range(STEPS):
        step(app)
        if case.stable() == RECORDS and all_read(app):
            app.service.leave()
            return
    raise AssertionError("a silent stall")


def looks(case: Case) -> list[str]:
    """The errors of views that refuse to show the group."""
    client, name, messages = case.group.client, case.group.name, []
    for show in (
        lambda: view(name, read_group(client, name)),
        lambda: gaps(read_group(client, name)),
        lambda: top_view(look_at(client, name, strikes=False)),
    ):
        try:
            show()
        except CoopKafkaError as error:
            assert error.remedy
            messages.append(str(error))
    return messages


def half_way(case: Case) -> Application:
    """A member that has a third of the topic behind it, and a batch under way."""
    app = application(case)
    for _ in range(STEPS):
        step(app)
        if case.stable() == PART:
            case.member = app.member
            return app
    raise AssertionError("a sound group stalls")
