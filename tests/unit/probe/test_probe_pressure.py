"""Pressure stall information: what the kernel counts, in percent of the time."""

import os
from pathlib import Path

import pytest

from dbdyno.probe.host import PRESSURES, PressureSource

needs_pressure = pytest.mark.skipif(not Path("/proc/pressure/io").exists(), reason="this kernel tells no pressure")


@needs_pressure
def test_the_kernel_s_own_numbers():
    def of_the_kernel():
        lines = {one: Path(f"/proc/pressure/{one}").read_text().splitlines() for one, _ in PRESSURES}
        words = {(one, line.split()[0]): line.rpartition("total=")[2] for one, found in lines.items() for line in found}
        return [int(words[pair]) / 1e6 for pair in PRESSURES]

    source = PressureSource()
    first, found, second = of_the_kernel(), source.sample(), of_the_kernel()
    source.close()
    assert list(found) == ["cpu_some", "io_some", "io_full", "memory_some", "memory_full"]
    assert all(before <= value <= after for before, value, after in zip(first, found.values(), second, strict=True))


def test_seconds_stalled_become_percent_of_the_time():
    source = PressureSource.__new__(PressureSource)
    before = {"io_some": 10.0, "io_full": 4.0}
    after = {"io_some": 10.4, "io_full": 4.1}
    assert source.interval(before, after, 0.5) == pytest.approx({"%io_some": 80.0, "%io_full": 20.0})
    assert source.interval(before, after, 0.3)["%io_some"] == 100.0  # the two clocks are read one after the other


def test_a_kernel_that_does_not_tell(monkeypatch):
    opened = []

    def refuse(path, _):
        opened.append(path)
        raise OSError(95, "Operation not supported", path)

    monkeypatch.setattr(os, "open", refuse)
    with pytest.raises(OSError, match="not supported"):
        PressureSource()
    assert opened == ["/proc/pressure/cpu"]


@needs_pressure
def test_what_pollers_falsify_is_left_out():
    """A poller is always either running, so that nothing is ever "full", or waiting for the CPU."""
    source = PressureSource(pollers=True)
    found = source.sample()
    source.close()
    assert list(found) == ["io_some", "memory_some"]
