"""Decisions of the heartbeat thread: whether a batch is read, which slices to report, and when to warn. Pure.

It reads the state of the member, which the main thread replaces, and remembers only its own reports.
"""

from collections.abc import Iterable
from dataclasses import dataclass, replace

from coordinator.assignment.settings import GroupSettings
from coordinator.errors import RedisUnavailableError
from coordinator.member.kinds import Request
from coordinator.member.requests import LogLine
from coordinator.member.state import State
from coordinator.plan.poison import working_text
from coordinator.progress.slices import Slice

LOG_AGAIN_MS = 20_000
"""How often a line about the same outage is logged."""


NOT_KNOWN = ("", "")
"""The report after a call that failed: Redis may have it or not, so the next one is new."""


@dataclass(frozen=True, slots=True)
class Pulse:
    """The memory of the heartbeat thread."""

    working: tuple[str, str] = NOT_KNOWN  # reported to Redis: slices under way, and the nonce at which
    away: tuple[int, int] | None = None  # since when Redis does not answer, and when that was logged
    warned_of_ms: int | None = None  # when the last batch began that took too long


def unreported_work(pulse: Pulse, state: State, slices: Iterable[Slice]) -> tuple[str, str] | None:
    """The slices under way and the nonce, if Redis does not know them; after a loss of state all is new."""
    batch = state.batch
    work = working_text(slices, batch.trials if batch and batch.under_way else {}), state.life.nonce
    return None if work == pulse.working or not state.life.nonce else work


def reads(state: State, *, all_ended: bool) -> bool:
    """Whether a task of an authorised batch may read (rule: batch-clock). `all_ended`: all tasks told their ends."""
    batch = state.batch
    return batch is not None and batch.granted is not None and not batch.ended and not all_ended


def outage_line(
    pulse: Pulse, error: RedisUnavailableError, what: str, now_ms: int, settings: GroupSettings
) -> tuple[Pulse, Request[bool] | None]:
    """The log line of an outage: at once, then every 20 s."""
    since, logged = pulse.away or (now_ms, now_ms - LOG_AGAIN_MS)
    if now_ms - logged < LOG_AGAIN_MS:
        return pulse, None
    patience = f"the query fails once it has needed Redis for redisMaxOutage ({settings.max_outage_ms} ms)"
    line = LogLine(f"{what}: {error} For {(now_ms - since) // 1000} s now; {patience}")
    return replace(pulse, away=(since, now_ms)), line


def long_batch(
    pulse: Pulse, state: State, now_ms: int, settings: GroupSettings, *, all_ended: bool = False
) -> tuple[Pulse, Request[bool] | None]:
    """The log line of a batch that is read for too long, once: if it hangs, no other thread can report it."""
    batch = state.batch
    began = batch.began_ms if batch and reads(state, all_ended=all_ended) else None
    if began is None or began == pulse.warned_of_ms or now_ms - began <= settings.longest_ms:
        return pulse, None
    line = LogLine(
        f"group {settings.group}: a batch takes longer than longestBatch ({settings.longest_ms} ms), so other "
        "members may take its ranges; `coop-kafka stuck` then shows the suspect records. Raise "
        "longestBatch, or lower batchTimeBudget"
    )
    return replace(pulse, warned_of_ms=began), line
