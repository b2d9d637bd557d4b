"""The root of the error tree: what happened, and the remedy."""

from typing import ClassVar

from coordinator.errors.quoting import bounded


class CoopKafkaError(Exception):
    """Any error of coop-kafka.

    Programs and log searches rely on `name`. `retriable` is True if the same call can succeed later without any change.
    `usual_remedy` stands where the code that raises the error names no remedy of its own.
    `what` and `remedy` have at most `quoting.MESSAGE` characters: a longer text is cut in its middle.
    """

    name: ClassVar[str] = "COOP_KAFKA_ERROR"
    retriable: ClassVar[bool] = False
    usual_remedy: ClassVar[str] = ""

    def __init__(self, what: str, remedy: str = "") -> None:
        self.what, self.remedy = bounded(what), bounded(remedy or self.usual_remedy)
        super().__init__(self.what, self.remedy)

    @property
    def headline(self) -> str:
        """The name and what happened, without the remedy."""
        return f"{self.name}: {self.what.rstrip('.')}"

    def __str__(self) -> str:
        return f"{self.headline}. Remedy: {self.remedy.rstrip('.')}." if self.remedy else f"{self.headline}."
