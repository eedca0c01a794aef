"""The cuts that a study asks for, if any."""

from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from dataclasses import dataclass
from typing import Any, ClassVar

from dbdyno.crash.killing import Kill
from dbdyno.crash.power import PowerCuts
from dbdyno.crash.trial_cuts import AboutTrial, Crashing
from dbdyno.errors import TrialError
from dbdyno.model.cut import Cut
from dbdyno.stack.layer import StackContext
from dbdyno.stack.layers.device import Emulated
from dbdyno.workload.workload import Workload


@dataclass(frozen=True)
class NoCrash:
    """A study of speed."""

    keeps_server: ClassVar[bool] = True

    workload: Workload

    def beside(self, _: StackContext) -> AbstractContextManager[None]:
        """Nothing beside the load."""
        return nullcontext()

    def after_load(self, context: StackContext, _: tuple[int, int]) -> AbstractContextManager[StackContext]:
        """The stack as it is."""
        return nullcontext(context)

    def examined(self, _: tuple[int, int]) -> list[Cut]:
        """No cuts."""
        return []

    def observed(self) -> dict[str, dict[str, Any]]:
        """Nothing."""
        return {}


@contextmanager
def crashing(about: AboutTrial) -> Iterator[Crashing]:
    """The cuts that a study asks for; the disk's states of them are dropped in the end."""
    section = about.spec.crash
    if section is None:
        yield NoCrash(about.workload)
    elif section.mode == "kill":
        yield Kill(about, section)
    else:
        assert isinstance(about.stack.device, Emulated)  # noqa: S101  (a rule of the study format)
        disk = about.stack.device.disk.client
        try:
            yield PowerCuts(about, section, disk)
        finally:
            with suppress(TrialError):  # a disk that is gone has dropped them
                disk.forget_cuts()
