"""Workers: one function called on several hosts at once, whatever carries the calls: Ray, or threads here."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dbdyno.errors import HostError

# Given a JSON text, it returns a text that depends on nothing else; now and then it calls the callable with how far it
# is, in a measure of its own, and what that raises ends it. On other hosts it is found by its module and name.
Work = Callable[[str, Callable[[float], None]], str]


@dataclass(frozen=True)
class Returned:
    """A call that has ended: with a text, or with what it raised."""

    ticket: int
    host: str
    text: str
    cpu_s: float
    error: Exception | None = None


class Workers(ABC):
    """Hosts that call a function. What a lost host was at must be begun on another; it may come back."""

    @abstractmethod
    def cores(self) -> Mapping[str, int]:
        """The hosts that are not lost, and how many calls each has processors for."""

    @abstractmethod
    def begin(self, host: str, ticket: int, given: str) -> None:
        """Have a host call the function, beside or after those that it is at; ``returned`` has the ticket."""

    @abstractmethod
    def returned(self, seconds: float) -> list[Returned]:
        """The calls that have ended since the last time; where none has, one is waited for as long as said."""

    @abstractmethod
    def lost(self) -> Mapping[str, str]:
        """The hosts that are lost by now, and why; of these no call returns any more."""

    @abstractmethod
    def leave_out(self, host: str, why: str) -> None:
        """Count a host as lost."""

    @abstractmethod
    def lacking(self, host: str, names: Sequence[str]) -> tuple[str, list[str]]:
        """The folder of inputs there, and which of these files are not in it. Raises ``HostError``."""

    def there_again(self) -> list[str]:
        """The hosts that were lost and can be made ready to take part again; none where there are no such hosts."""
        return []

    def renew(self, host: str) -> None:
        """Make such a host ready, but for the files it needs; waits for it, in any thread. Raises ``HostError``."""
        raise HostError(f"{host}: was lost, and is not taken back")

    def take_back(self, host: str) -> None:
        """Have it take part: from now on it is not lost."""
        raise HostError(f"{host}: was lost, and is not taken back")

    @abstractmethod
    def reached(self) -> Mapping[int, float]:
        """How far each call is that runs, by its ticket, as was reported last."""

    @abstractmethod
    def close(self) -> None:
        """End every call, and wait until it has ended where that is known."""
