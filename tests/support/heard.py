"""A listener for ownership that writes down what it is told."""

from coordinator.assignment.ownership_listener import KeyRanges, OwnershipListener


class Heard(OwnershipListener):
    """Writes down what it is told."""

    def __init__(self) -> None:
        self.told: list[tuple[str, KeyRanges]] = []

    def on_assigned(self, ranges: KeyRanges) -> None:
        self.told.append(("assigned", ranges))

    def on_revoked(self, ranges: KeyRanges) -> None:
        self.told.append(("revoked", ranges))

    def on_lost(self, ranges: KeyRanges) -> None:
        self.told.append(("lost", ranges))
