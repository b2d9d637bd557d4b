"""Commits of offset ranges and of reservations, below `GroupCommits`, which serves rows.

Use them where a program has offsets and no rows. They need the lanes of a batch, so they know more of coop-kafka's
insides than other public names, and a minor version may change them. Any process that reaches Redis may use them.
"""

from coordinator.commits.acknowledger import Acknowledger
from coordinator.commits.commit_api import CommitApi, Committed
from coordinator.commits.ordered_commits import OrderedCommits
from coordinator.progress.acknowledgement import Acknowledgement

__all__ = ["Acknowledgement", "Acknowledger", "CommitApi", "Committed", "OrderedCommits"]
