"""Heat and wear as a series, from a smartctl that says what a real one said."""

import json
import math

import pytest

from dbdyno.probe.drive import SmartSource, smart_sources
from dbdyno.probe.sampler import Sampler

NVME = {"temperature": {"current": 41}, "nvme_smart_health_information_log": {"percentage_used": 3, "media_errors": 0}}


@pytest.fixture
def smartctl(tmp_path, monkeypatch):
    """Put a smartctl on PATH; each asking gets the next of what it is told to say, and the last for ever."""

    def install(*said):
        for number, one in enumerate(said, start=1):
            (tmp_path / f"said{number}").write_text(json.dumps(one), encoding="utf-8")
        program = tmp_path / "smartctl"
        script = f"""#!/bin/sh
[ "$*" = "--json --attributes /dev/sdz" ] || exit 4
asked=$(cat {tmp_path}/asked 2>/dev/null || echo 0); asked=$((asked + 1)); echo $asked > {tmp_path}/asked
cat {tmp_path}/said$asked 2>/dev/null || cat {tmp_path}/said{len(said)}
"""
        program.write_text(script, encoding="utf-8")
        program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin")

    return install


def test_a_disk_that_warms_up(smartctl):
    smartctl(NVME, NVME, NVME | {"temperature": {"current": 57}})
    source = SmartSource("sdz")
    before, after = source.sample(), source.sample()
    columns = source.interval(before, after, 10.0)
    assert columns == {"temperature_celsius": 57.0, "percentage_used": 3.0, "media_errors": 0.0}
    assert 0 < source.outside_seconds() < 60
    source.close()


def test_a_figure_that_is_not_told_for_once_is_unknown(smartctl):
    smartctl(NVME, {"temperature": {"current": 44}, "power_cycle_count": 9})
    source = SmartSource("sdz")
    columns = source.interval({}, source.sample(), 10.0)
    assert columns["temperature_celsius"] == 44
    assert math.isnan(columns["percentage_used"])
    assert "power_cycles" not in columns


def test_disks_that_tell_nothing_are_not_watched(smartctl):
    smartctl({})
    assert smart_sources(["sdz", "sda"]) == []
    smartctl(NVME)
    assert [source.name for source in smart_sources(["sda", "sdz", "sdz"])] == ["smart", "smart_sdz"]


def test_a_disk_that_falls_silent_is_missed(smartctl):
    smartctl(NVME, NVME, {}, NVME)
    sampler = Sampler([SmartSource("sdz")], 50_000_000)
    sampler.start()
    while len(sampler.series["smart"].t_ns) < 2:
        pass
    series = sampler.stop()["smart"]
    assert series.missed == 1
    assert set(series.columns["temperature_celsius"]) == {41.0}
    assert series.outside_seconds > 0
