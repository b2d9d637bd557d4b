"""Errors of policies and limits, each with a number.

Kafka uses the same numbers for other errors. Coop-kafka never sends them to a broker (rule: commit-error-codes).
"""

from typing import ClassVar

from coordinator.errors.base import CoopKafkaError
from coordinator.errors.group import InvalidAssignmentError


class CodedError(CoopKafkaError):
    """A policy of the group or of a topic, or a limit of a partition, forbids it. `code` is the error's number."""

    name = "CODED_ERROR"
    code: ClassVar[int] = 0  # each kind has a number of its own

    @property
    def headline(self) -> str:
        """The name, the code and what happened, without the remedy."""
        return f"{self.name}: code {self.code}: {self.what.rstrip('.')}"


class IndividualCommitNotAllowedError(CodedError):
    """The group's policy accept.individual.commit is false, so members share no partition and commit no ranges."""

    name = "INDIVIDUAL_COMMIT_NOT_ALLOWED"
    code = 88
    usual_remedy = (
        "set the policy with coop-kafka policy GROUP --set accept.individual.commit=true --execute, or do without"
    )


class TopicRangeFetchNotAllowedError(CodedError):
    """The policy accept.range.fetch of a topic is false, so no member may read a part of its partitions."""

    name = "TOPIC_RANGE_FETCH_NOT_ALLOWED"
    code = 89
    usual_remedy = (
        "set the policy with coop-kafka policy GROUP --set accept.range.fetch:TOPIC=true --execute, or do without"
    )


class ConsumerRangeFetchNotAcceptedError(CodedError, InvalidAssignmentError):
    """An assignor assigned a part of a partition to a member that accepts only whole partitions. No query fails."""

    name = "CONSUMER_RANGE_FETCH_NOT_ACCEPTED"
    code = 90
    usual_remedy = "remove sharing=partitions from that member, or choose an assignor of whole partitions"


class IndividualCommitTooOldError(CodedError):
    """All offsets of a commit are below the stable offset, which `stable` holds."""

    name = "INDIVIDUAL_COMMIT_TOO_OLD"
    code = 91
    usual_remedy = "continue from the stable offset that the message names; nothing is lost"

    def __init__(self, what: str, remedy: str = "", stable: int = 0) -> None:
        super().__init__(what, remedy)
        self.stable = stable


class MaxIndividualCommitReachedError(CodedError):
    """A commit would exceed maxIndividualCommits, the limit of individual commits in one partition."""

    name = "MAX_INDIVIDUAL_COMMIT_REACHED"
    code = 92
    usual_remedy = "commit the missing offsets below first, or raise maxIndividualCommits"
