"""Every error that this project raises, in one tree.

Each class has a docstring, its meaning, and a `usual_remedy`. docs/reference.md is made of both. A class without a
`usual_remedy` is never raised itself: it is there for `except`. No message holds a secret: `redacted` shows urls.
"""

from coordinator.errors.base import *
from coordinator.errors.command import *
from coordinator.errors.commits import *
from coordinator.errors.configuration import *
from coordinator.errors.function import *
from coordinator.errors.group import *
from coordinator.errors.kafka import *
from coordinator.errors.policies import *
from coordinator.errors.redis import *
from coordinator.errors.urls import *
