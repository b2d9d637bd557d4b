"""All seeded faults. A test compares them with the rules of docs/protocol.md: each rule has one at least."""

from mutants import of_batches, of_commits, of_members, of_positions

FAULTS = (*of_batches.FAULTS, *of_members.FAULTS, *of_positions.FAULTS, *of_commits.FAULTS)

WITHOUT: dict[str, str] = {}
"""Rules without a fault, each with the reason."""
