"""What the probes compute from the kernel's and the server's counters, against numbers worked out by hand."""

import gc
import os
import re
import time
from pathlib import Path

import psutil
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.host.perf_events import OF_PROCESSOR
from dbdyno.probe import iostat
from dbdyno.probe.host import PRESSURES, HostCpuSource, PressureSource
from dbdyno.probe.iostat import BlockDeviceSource
from dbdyno.probe.server import ServerProcessSource, ServerStatusSource
from dbdyno.servers.contract import Address, ServerError
from dbdyno.servers.mysql.server import COUNTERS, GAUGES, MysqlServer, MysqlStatus, checkpoint_age
from dbdyno.store.block_trace import SCALARS

BEFORE = "  1000 20 80000 5000  2000 300 160000 40000 3 90000 45000  7 0 56 1  500 9000"
AFTER = "  1200 30 84000 5900  2600 360 208000 64000 5 91500 69900  7 0 56 1  900 10000"


@pytest.fixture
def block_device(tmp_path, monkeypatch):
    """Read /sys/block/sdx/stat from a file of our own; call with the text it then holds."""
    (tmp_path / "sdx").mkdir()
    stat = tmp_path / "sdx" / "stat"
    stat.write_text(BEFORE)
    real = type(tmp_path)
    monkeypatch.setattr("dbdyno.probe.iostat.Path", lambda _: real(tmp_path))
    source = BlockDeviceSource("sdx")

    def sample(text):
        stat.write_text(text)
        return source.sample()

    sample.interval = source.interval
    yield sample
    source.close()


def test_a_block_device_in_iostat_s_columns(block_device):
    columns = block_device.interval(block_device(BEFORE), block_device(AFTER), 2.0)
    assert columns == pytest.approx(
        {
            "r/s": 100.0,  # 200 reads in 2 s
            "w/s": 300.0,
            "rMB/s": 1.024,  # 4,000 sectors of 512 bytes
            "wMB/s": 12.288,
            "dMB/s": 0.0,
            "d/s": 0.0,
            "rrqm/s": 5.0,
            "wrqm/s": 30.0,
            "drqm/s": 0.0,
            "%rrqm": 100 * 10 / 210,  # 10 merged with the 200 done
            "%wrqm": 100 * 60 / 660,
            "%drqm": 0.0,
            "rareq-sz": 10.0,  # 4,000 sectors over 200 requests, in KiB
            "wareq-sz": 40.0,
            "dareq-sz": 0.0,
            "d_await": 0.0,
            "r_await": 4.5,  # 900 ms over 200 reads
            "w_await": 40.0,
            "f/s": 200.0,
            "f_await": 2.5,
            "areq-sz": 32.5,  # 52,000 sectors over 800 requests, in KiB
            "aqu-sz": 12.45,  # 24,900 ms weighted in 2,000 ms
            "%util": 75.0,
            "reads_done": 1200.0,
            "writes_done": 2600.0,
            "flushes_done": 900.0,
            "read_bytes": 84_000 * 512,
            "written_bytes": 208_000 * 512,
        }
    )


def test_two_devices_are_added_up_before_columns_are_computed(tmp_path, monkeypatch):
    real = type(tmp_path)
    monkeypatch.setattr("dbdyno.probe.iostat.Path", lambda _: real(tmp_path))
    for name in ("sdx", "sdy"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "stat").write_text(f"{BEFORE}\n")
    source = BlockDeviceSource("sdx", "sdy")
    before = source.sample()
    (tmp_path / "sdx" / "stat").write_text(f"{AFTER}\n")  # the other one did nothing
    columns = source.interval(before, source.sample(), 2.0)
    source.close()
    assert (columns["r/s"], columns["w/s"], columns["f/s"]) == (100.0, 300.0, 200.0)
    assert (columns["r_await"], columns["w_await"], columns["aqu-sz"]) == (4.5, 40.0, 12.45)
    assert columns["%util"] == 37.5, "the mean of 75 and 0"
    assert columns["written_bytes"] == (208_000 + 160_000) * 512


def test_a_second_device_that_is_not_there_leaves_no_file_open():
    # One that no test beside this one takes away.
    lasting = min(Path("/sys/class/block").iterdir(), key=lambda path: (path.name.startswith("loop"), path.name))
    with pytest.raises(FileNotFoundError, match="no-such-device"):
        BlockDeviceSource(lasting.name, "no-such-device")
    assert not [one for one in psutil.Process().open_files() if one.path.startswith("/sys/")]


def test_discards_in_iostat_s_columns(block_device):
    discarded = AFTER.replace("7 0 56 1", "27 60 4056 201")
    columns = block_device.interval(block_device(BEFORE), block_device(discarded), 2.0)
    expected = {"d/s": 10.0, "dMB/s": 1.024, "drqm/s": 30.0, "%drqm": 75.0, "d_await": 10.0, "dareq-sz": 100.0}
    assert {name: columns[name] for name in expected} == pytest.approx(expected)
    assert columns["areq-sz"] == pytest.approx(56_000 / 2 / 820)


def test_a_device_that_did_nothing_shows_noughts(block_device):
    columns = block_device.interval(block_device(BEFORE), block_device(BEFORE), 0.1)
    assert {value for name, value in columns.items() if not name.endswith(("_bytes", "_done"))} == {0.0}


def test_a_kernel_without_flush_counters_shows_none(block_device):
    old = [block_device(" ".join(text.split()[:11])) for text in (BEFORE, AFTER)]
    columns = block_device.interval(*old, 2.0)
    assert (columns["f/s"], columns["f_await"], columns["w_await"]) == (0.0, 0.0, 40.0)


def test_busy_is_at_most_all_the_time(block_device):
    assert block_device.interval(block_device(BEFORE), block_device(AFTER), 1.0)["%util"] == 100.0


def test_a_device_that_is_not_there():
    with pytest.raises(OSError, match="No such file"):
        BlockDeviceSource("no-such-device")


def cpu(**ticks):
    return dict.fromkeys(("user", "nice", "system", "idle", "iowait", "irq", "softirq", "steal"), 100.0) | ticks


def test_host_cpu_in_percent_of_all_cores():
    source = HostCpuSource()
    after = cpu(user=130, nice=110, system=115, idle=220, iowait=115, irq=102, softirq=103, steal=105)
    assert source.interval(cpu(), after, 1.0) == pytest.approx(
        {"%user": 20.0, "%system": 10.0, "%idle": 60.0, "%iowait": 7.5, "%steal": 2.5}
    )
    assert set(source.interval(cpu(), cpu(), 1.0).values()) == {0.0}
    # iowait may run backwards (proc(5)); a share below nought would be nonsense.
    assert source.interval(cpu(), cpu(iowait=90, idle=110), 1.0)["%idle"] == 100.0
    source.close()


def test_host_cpu_counts_what_the_kernel_counts():
    source = HostCpuSource()
    first, times, second = source.sample(), psutil.cpu_times(), source.sample()
    ticks = os.sysconf("SC_CLK_TCK")
    for state in ("system", "idle", "iowait", "steal"):
        assert first[state] <= getattr(times, state) * ticks + 1e-6
        assert getattr(times, state) * ticks <= second[state] + 1e-6
    source.close()


def test_the_server_s_process():
    source = ServerProcessSource(os.getpid())
    before = source.sample()
    deadline = time.process_time() + 0.05
    while time.process_time() < deadline:
        pass
    after = source.sample()
    own = psutil.Process()
    assert after["user_seconds"] + after["system_seconds"] == pytest.approx(sum(own.cpu_times()[:2]), abs=0.05)
    assert after["resident_bytes"] == pytest.approx(own.memory_info().rss, rel=0.2)
    assert after["write_bytes"] <= own.io_counters().write_bytes
    spent = sum(after[name] - before[name] for name in ("user_seconds", "system_seconds"))
    assert 0.03 <= spent <= 0.5
    source.close()


def test_the_server_s_process_as_rates():
    names = ("user_seconds", "system_seconds", "resident_bytes", "read_bytes", "write_bytes")
    before, after = (dict(zip(names, v, strict=True)) for v in ((1, 2, 5e6, 0, 1e6), (1.5, 2.25, 7e6, 4e6, 2e6)))
    source = ServerProcessSource(os.getpid())
    assert source.interval(before, after, 0.5) == pytest.approx(
        {"cpu_seconds": 3.75, "%usr": 100.0, "%system": 50.0, "rss_MB": 7.0, "rMB/s": 8.0, "wMB/s": 2.0}
    )
    source.close()


def test_a_process_that_has_ended_can_not_be_watched():
    with pytest.raises(OSError, match="No such file"):
        ServerProcessSource(2**22 + 1)


class ScriptedServer:
    """A server that tells what a test has it tell; its own adapter makes sense of that."""

    counters, gauges, numbers = COUNTERS, GAUGES, staticmethod(MysqlStatus.numbers)

    def __init__(self, told=""):
        self.told = told

    def status(self):
        return self

    def text(self):
        if isinstance(self.told, Exception):
            raise self.told
        return self.told


def test_server_status_counters_become_rates_and_gauges_stay():
    source = ServerStatusSource(ScriptedServer())
    before = {"Questions": 100.0, "Key_writes": 5.0, "Threads_running": 3.0}
    after = {"Questions": 300.0, "Key_writes": 5.0, "Threads_running": 7.0}
    assert source.interval(before, after, 0.5) == {"Questions/s": 400.0, "Key_writes/s": 0.0, "Threads_running": 7.0}


def test_the_checkpoint_s_age_from_what_a_server_tells():
    source = ServerStatusSource(ScriptedServer())
    by_mysql_9 = "Innodb_redo_log_checkpoint_lsn=19046643,Questions=7,Innodb_redo_log_current_lsn=19376237"
    assert source.counters(by_mysql_9) == {"Questions": 7.0, "Innodb_checkpoint_age": 329594.0}
    by_mysql_5_6 = (
        "LOG\n---\nLog sequence number 1626027\nLog flushed up to   1626027\nLast checkpoint at  1625100\n0 pending"
    )
    assert source.counters("Questions=7" + checkpoint_age(by_mysql_5_6))["Innodb_checkpoint_age"] == 927.0
    assert [checkpoint_age(text) for text in ("", "None", "Log sequence number 5\n")] == ["", "", ""]


@pytest.mark.parametrize("told", ["", "Questions", "Questions=many", "Questions=1=2"])
def test_a_server_that_tells_no_numbers_is_not_believed(told):
    with pytest.raises(OSError, match="the server's status is"):
        ServerStatusSource(ScriptedServer()).counters(told)


def test_a_sample_that_the_server_refuses_is_one_that_could_not_be_taken():
    with pytest.raises(OSError, match="it is being shut down"):
        ServerStatusSource(ScriptedServer(ServerError("it is being shut down"))).sample()


@given(st.lists(st.sampled_from([*COUNTERS, *GAUGES]), unique=True, min_size=1), st.data())
def test_rates_and_gauges_of_whatever_a_server_has(names, data):
    numbers = st.integers(0, 2**53)
    told = [{name: data.draw(numbers) for name in names} for _ in range(2)]
    source = ServerStatusSource(ScriptedServer())
    before, after = (source.counters(",".join(f"{name}={value}" for name, value in one.items())) for one in told)
    assert [before, after] == told
    columns = source.interval(before, after, 0.5)
    assert set(columns) == {f"{name}/s" for name in names if name in COUNTERS} | {
        name for name in names if name in GAUGES
    }
    for name in names:
        rate = 2 * (told[1][name] - told[0][name])
        assert columns.get(f"{name}/s", rate) == rate
        assert columns.get(name, told[1][name]) == told[1][name]


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # pymysql leaves failed connections to the collector
def test_a_server_that_does_not_answer_can_not_be_watched(tmp_path):
    with pytest.raises(OSError, match="Can't connect"):
        ServerStatusSource(MysqlServer(Address("root", tmp_path / "no.sock")))
    gc.collect()


def test_every_column_is_told_in_the_documentation(block_device):
    source = Path(__file__).parents[3] / "docs" / "probes.md"
    sections = dict(
        re.findall(r"^## (\w+)\n(.*?)(?=^## |\Z)", source.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
    )
    process = ["cpu_seconds", "%usr", "%system", "rss_MB", "rMB/s", "wMB/s"]
    columns = {
        "block_device": block_device.interval(block_device(BEFORE), block_device(AFTER), 2.0),
        "host_cpu": ["%user", "%system", "%idle", "%iowait", "%steal"],
        "pressure": [f"%{resource}_{kind}" for resource, kind in PRESSURES],
        "server_process": process,
        "server_switches": ["voluntary", "involuntary", "cswch/s"],
        "server_counters": [*OF_PROCESSOR],
        "server_status": [*COUNTERS, *GAUGES],
        "smart": ["temperature_celsius"],
        "block_trace": ["queue_ms", "device_ms", "seek_MB", "sorted_run_requests", "device_depth", *SCALARS],
    }
    for probe, names in columns.items():
        assert [name for name in names if f"`{name}`" not in sections[probe]] == [], probe
        assert "Cannot:" in sections[probe]
    written = "".join(path.read_text(encoding="utf-8") for path in Path(iostat.__file__).parent.glob("*.py"))
    names = set(re.findall(r'^    name = "(\w+)"$', written, re.MULTILINE)) - {"foreign"}
    assert names | {"interference", "block_trace", "host_speed"} == set(sections)


# Pressure stall information: what the kernel counts, in percent of the time.


needs_pressure = pytest.mark.skipif(not Path("/proc/pressure/io").exists(), reason="this kernel tells no pressure")


@needs_pressure
def test_the_kernel_s_own_numbers():
    def kernel_totals():
        lines = {one: Path(f"/proc/pressure/{one}").read_text().splitlines() for one, _ in PRESSURES}
        words = {(one, line.split()[0]): line.rpartition("total=")[2] for one, found in lines.items() for line in found}
        return [int(words[pair]) / 1e6 for pair in PRESSURES]

    source = PressureSource()
    first, found, second = kernel_totals(), source.sample(), kernel_totals()
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
