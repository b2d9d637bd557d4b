"""A listener for ownership that records its calls."""

from coordinator.assignment.ownership_listener import KeyRanges, OwnershipListener


class RecordingListener(OwnershipListener):
    """Records the name and the ranges of each call."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, KeyRanges]] = []

    def on_assigned(self, ranges: KeyRanges) -> None:
        self.calls.append(("assigned", ranges))

    def on_revoked(self, ranges: KeyRanges) -> None:
        self.calls.append(("revoked", ranges))

    def on_lost(self, ranges: KeyRanges) -> None:
        self.calls.append(("lost", ranges))
