"""The settings of one query as one value. Durations in milliseconds."""

import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Literal, get_args

from coordinator.assignment.assignors.assignor import Assignor
from coordinator.assignment.assignors.grouped import Grouped
from coordinator.assignment.ownership_listener import OwnershipListener
from coordinator.values.option_kinds import DAY_MS, INT, Duration, Flag, Integer, Word
from coordinator.values.options import option, option_or, optional
from coordinator.values.record_filter import EVERYTHING, RecordFilter

LONGEST_DELAY_MS = DAY_MS
"""The longest delay of a failing key that any error policy allows."""

Ordering = Literal["key", "partition", "none"]
StateLoss = Literal["fail", "earliest"]
Policies = Literal["optional", "required"]
Takes = Literal["records", "keys", "batches"]
_ORDERINGS: tuple[Ordering, ...] = get_args(Ordering)
_POLICIES: tuple[Policies, ...] = get_args(Policies)
_TAKES: tuple[Takes, ...] = get_args(Takes)
_STATE_LOSSES: tuple[StateLoss, ...] = get_args(StateLoss)


@dataclass(frozen=True, kw_only=True)  # without slots: a query's options have more bases
class MemberOptions:
    """The options of a query that its member obeys. Each is declared here, and nowhere else."""

    capacity: int = option_or(1, "capacity", Integer(1, 1_000_000))  # the member's share of the group's work
    session_ms: int = option(
        "sessionTimeout", Duration(1_800_000, 1_000), "45s", also={"kafka.session.timeout.ms": None}
    )
    longest_ms: int = option("longestBatch", Duration(INT, 1_000), "5m", also={"kafka.max.poll.interval.ms": None})
    batch_budget_ms: int = option("batchTimeBudget", Duration(DAY_MS), "10s")  # of a batch; 0: none
    max_lead_ms: int | None = optional("maxLaneLead", Duration(DAY_MS))  # record time between two lanes; None: any
    retention_ms: int = option(
        "offsetsRetention",
        Duration(INT * 60_000, 60_000),
        "7d",
        also={"offsets.retention.minutes": Integer(1, INT, unit=60_000)},
    )
    max_outage_ms: int = option("redisMaxOutage", Duration(DAY_MS), "60s")
    growth_grace_ms: int = option("partitionGrowthGrace", Duration(DAY_MS), "10m")  # of new partitions; 0: none
    on_state_loss: StateLoss = option("onStateLoss", Word(_STATE_LOSSES), "fail")
    fail_on_data_loss: bool = option("failOnDataLoss", Flag(), "true")
    standby: bool = option("standby", Flag(), "false")  # rule: standby-takes-over
    policies: Policies = option("policies", Word(_POLICIES), "optional")  # whether its user must read the cluster's
    ordering: Ordering = option("ordering", Word(_ORDERINGS), "key")  # of the group (rule: one-ordering)
    unread_batches: bool = option("allowUnreadBatches", Flag(), "false")  # count as done once the sink completes them
    replay_acknowledged: bool = option("replayAcknowledged", Flag(), "true")  # whether a replay has those records
    max_individual_commits: int = option("maxIndividualCommits", Integer(1, 100_000), "10000")  # of a partition
    max_deferred_keys: int = option("maxDeferredKeys", Integer(1, 100_000), "10000")  # of a partition
    takes: Takes = option("functionTakes", Word(_TAKES), "batches")  # what a call of the user's function gets
    concurrency: int = option("functionConcurrency", Integer(1, 16_384), "1")  # keys at once inside a task

    @property
    def per_key(self) -> bool:
        """Whether each call of the user's function is of one key."""
        return self.takes != "batches"


@dataclass(frozen=True, slots=True)
class GroupSettings(MemberOptions):
    """Settings of one member of a group, or of a query without a group."""

    group: str  # empty without a group
    sharing: bool = True  # whether this member may get parts of partitions
    alone: bool = False  # whether no other application may read the group meanwhile
    demanding: bool = False  # whether its user demands parts: refused if policies forbid it
    filter: RecordFilter = EVERYTHING
    early_ends: bool = False  # whether tasks may end slices before their planned ends
    assignors: tuple[Assignor, ...] = (Grouped(),)  # by preference
    listener: OwnershipListener = field(default_factory=OwnershipListener)
    on_error: bool = False  # whether tasks may defer keys on which the user's function failed
    longest_delay_ms: int = LONGEST_DELAY_MS  # of a failing key, before its next attempt
    starting_option: str | None = None  # the user's option that names the first positions, for messages
    tokens: Callable[[int], str] = secrets.token_hex  # random hex digits of so many bytes; a simulation has its own
    watch: Callable[[Any], None] | None = None  # called with each state of the member; for tests and the simulation

    @property
    def commit_fields(self) -> dict[str, str]:
        """The fields of the member in Redis that the Commit API reads."""
        return {"max.individual.commits": str(self.max_individual_commits)}
