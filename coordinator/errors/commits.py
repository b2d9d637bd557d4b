"""Errors of the Commit API. A refused call commits nothing."""

from coordinator.errors.base import CoopKafkaError


class CommitError(CoopKafkaError):
    """The arguments of a call contradict one another or name no worker. Nothing was committed."""

    name = "COMMIT_REFUSED"
    usual_remedy = "correct the argument that the message names"


class CorruptCommitError(CommitError):
    """A commit names both ranges and a plain offset, or neither."""

    name = "CORRUPT_COMMIT"
    usual_remedy = "pass offset ranges, or one offset and no ranges"


class CorruptAcknowledgementError(CommitError):
    """A string is not the `acknowledgement` of a row, or it was changed. Nothing was committed."""

    name = "CORRUPT_ACKNOWLEDGEMENT"
    usual_remedy = "pass the column acknowledgement of a row as it is"


class CommitBeyondReadError(CommitError):
    """A commit names offsets that the member cannot have read. `reach` is the first of them."""

    name = "COMMIT_BEYOND_READ"
    usual_remedy = "commit only records that the member has received"

    def __init__(self, what: str, remedy: str = "", reach: int = 0) -> None:
        super().__init__(what, remedy)
        self.reach = reach


class CommitBeforeEndsError(CommitError):
    """A commit of offsets of a batch whose tasks may end early, while Redis does not have these ends."""

    name = "COMMIT_BEFORE_ENDS"
    usual_remedy = (
        "commit rows by their acknowledgements, with GroupCommits or with OrderedCommits of CommitApi.of_member; or "
        "commit offsets after all tasks of the batch have ended and before the next batch: in foreachBatch, after an "
        "action on its rows"
    )


class TooManyRangesError(CommitError):
    """A commit has more ranges than one call may have: 60,000."""

    name = "TOO_MANY_RANGES"
    usual_remedy = "cut the list, and commit each part by one call"


class OrderedCommitRefusedError(CommitError):
    """An ordered commit waits for offsets that no active worker holds, or that another worker holds."""

    name = "ORDERED_COMMIT_REFUSED"
    usual_remedy = (
        "commit again when the missing offsets are processed, or read on from the offset in the message. If no record "
        "lies there, reserve rows by their acknowledgements (reserve_rows), or offsets from the one after the last row "
        "before them on"
    )


class CommitWithoutOrderError(CommitError):
    """The group has ordering=none. Its members own no key ranges, so only whole batches are committed."""

    name = "COMMIT_WITHOUT_ORDER"
    usual_remedy = (
        "let each batch commit its records, or stop all queries of the group and start them with ordering=key"
    )
