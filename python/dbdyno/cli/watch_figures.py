"""What ``dbdyno watch`` shows: iostat's columns of each interval, and the block trace's where it is asked for."""

from collections.abc import Callable, Generator
from contextlib import ExitStack

from dbdyno.errors import HostError
from dbdyno.probe import iostat, live_trace
from dbdyno.probe.block_device import BlockDeviceSource
from dbdyno.system.clock import now_ns

Figures = dict[str, dict[str, float]]  # device -> column -> value


def columns_of(*, trace: bool) -> tuple[str, ...]:
    """The columns in their order."""
    return (*iostat.COLUMNS, *live_trace.COLUMNS) if trace else iostat.COLUMNS


def intervals(
    names: list[str], seconds: float, pause: Callable[[float], bool], *, trace: bool
) -> Generator[Figures, None, None]:
    """The figures of each interval, until ``pause`` says no. Raises ``HostError`` where a device can't be watched."""
    sources = {name: BlockDeviceSource(name) for name in names}

    def read() -> dict[str, tuple[int, dict[str, float]]]:
        try:
            return {name: (now_ns(), source.sample()) for name, source in sources.items()}
        except OSError as error:
            raise HostError(f"a device has gone: {error.strerror}") from None

    with ExitStack() as ending:
        traces = ending.enter_context(live_trace.live_traces(names)) if trace else None
        before, due = read(), now_ns() / 1e9 + seconds
        while pause(max(0.0, due - now_ns() / 1e9)):
            after = read()
            traced = traces.interval() if traces else {}
            yield {
                name: iostat.as_iostat(source.interval(before[name][1], at[1], (at[0] - before[name][0]) / 1e9))
                | traced.get(name, {})
                for (name, source), at in zip(sources.items(), after.values(), strict=True)
            }
            before, due = after, max(due + seconds, now_ns() / 1e9)
