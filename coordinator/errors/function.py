"""The error of a user's function inside the read."""

from coordinator.errors.base import CoopKafkaError


class MapInReadError(CoopKafkaError):
    """The function of mapInRead raised an exception, or made rows that do not fit its schema."""

    name = "MAP_IN_READ_FAILED"
    usual_remedy = "mend the function; a restarted query reads the same records again"
