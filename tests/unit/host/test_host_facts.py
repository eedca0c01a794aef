"""Host facts from made-up trees: what is there is told, what is not is unknown."""

import json
import os
import re
import socket
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.host import storage
from dbdyno.host.processor import (
    is_guest,
    means_here,
    memory_facts,
    numa_facts,
    parameters,
    processor_facts,
    virtualisation_facts,
)
from dbdyno.host.read import UNKNOWN
from dbdyno.host.storage import disk_facts, disks_under, figures, smart_of
from dbdyno.run.preflight import host_facts


def tree(root, files):
    for name, text in files.items():
        path = root / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    return root


def unknowns(value):
    """Return every leaf of nested facts."""
    if isinstance(value, dict):
        return [leaf for item in value.values() for leaf in unknowns(item)]
    return [value]


def test_where_nothing_can_be_read_everything_is_unknown(tmp_path):
    assert set(unknowns(processor_facts(tmp_path / "cpuinfo", tmp_path))) == {UNKNOWN}
    facts = memory_facts(tmp_path / "meminfo", tmp_path)
    assert {facts["bytes"], facts["transparent_huge_pages"], facts["huge_pages"]} == {UNKNOWN}
    assert numa_facts(tmp_path)["nodes"] == UNKNOWN
    assert set(unknowns(disk_facts("no-such-disk"))) == {UNKNOWN}
    found = virtualisation_facts(cpu_flags=UNKNOWN, dmi=tmp_path, root=tmp_path, environ=tmp_path / "environ")
    assert set(unknowns(found)) == {UNKNOWN}
    assert parameters(UNKNOWN) == UNKNOWN
    assert disks_under(tmp_path / "nowhere") == []


@pytest.mark.host
def test_where_sys_is_hidden_there_is_no_disk(tmp_path, monkeypatch):
    """As in a container without rights."""
    sysfs = tmp_path / "sys"
    sysfs.mkdir(mode=0o700)
    monkeypatch.setattr(storage, "BY_NUMBER", sysfs)
    os.seteuid(65534)
    try:
        with pytest.raises(PermissionError):
            (sysfs / "8:0").exists()
        assert disks_under(Path("/")) == []
    finally:
        os.seteuid(0)


def test_a_processor(tmp_path):
    cpuinfo = tmp_path / "cpuinfo"
    first = "processor\t: 0\nmodel name\t: A: B 9\nmicrocode\t: 0x1\nflags\t\t: fpu aes avx2 fma\n\n"
    cpuinfo.write_text(first + first.replace("A: B", "C"), encoding="ascii")
    sysfs = tree(
        tmp_path / "cpu",
        {
            "smt/active": "1\n",
            "cpu0/cpufreq/scaling_driver": "intel_pstate\n",
            "cpu0/cpufreq/scaling_governor": "powersave\n",
            "cpu0/cpufreq/scaling_max_freq": "4500000\n",
            "cpu1/cpufreq/scaling_driver": "intel_pstate\n",
            "cpu1/cpufreq/scaling_governor": "performance\n",
            "intel_pstate/no_turbo": "1\n",
            "vulnerabilities/meltdown": "Mitigation: PTI\n",
        },
    )
    found = processor_facts(cpuinfo, sysfs)
    assert (found["model"], found["microcode"], found["flags"], found["smt"]) == (
        "A: B 9",
        "0x1",
        ["avx2", "aes"],
        "on",
    )
    assert found["frequency"] == {
        "driver": "intel_pstate",
        "governor": "performance, powersave",
        "boost": "off",
        "min_khz": UNKNOWN,
        "max_khz": 4500000,
    }
    assert found["mitigations"] == {"meltdown": "Mitigation: PTI"}


def test_memory_and_nodes(tmp_path):
    (tmp_path / "meminfo").write_text("MemTotal:  1024 kB\nSwapTotal: 0 kB\nHugePages_Total: 3\n", encoding="ascii")
    huge = {"transparent_hugepage/enabled": "always [madvise] never", "hugepages/hugepages-2048kB/nr_hugepages": "16"}
    facts = memory_facts(tmp_path / "meminfo", tree(tmp_path / "mm", huge))
    assert (facts["bytes"], facts["swap_bytes"], facts["transparent_huge_pages"]) == (1 << 20, 0, "madvise")
    assert facts["huge_pages"] == {"2048kB": 16}
    nodes = {"node1/cpulist": "2-3", "node1/meminfo": "Node 1 MemTotal: 8 kB", "node0/cpulist": "0-1"}
    found = numa_facts(tree(tmp_path / "node", nodes))["nodes"]
    assert found == {"node0": {"cpus": "0-1", "bytes": UNKNOWN}, "node1": {"cpus": "2-3", "bytes": 8192}}


def test_a_command_line_may_hold_secrets_so_only_what_matters_is_kept():
    line = "quiet mitigations=off token=hunter2 nosmt root=UUID=1 isolcpus=2,3 -- mitigations=auto --password x"
    assert parameters(line) == ["mitigations=off", "nosmt", "isolcpus=2,3"]


@pytest.mark.parametrize(
    ("files", "flags", "expected"),
    [
        ({"dmi/sys_vendor": "Amazon EC2", "dmi/product_name": "m7i"}, ["hypervisor"], ("yes", "amazon", "none seen")),
        ({"dmi/sys_vendor": "QEMU"}, ["hypervisor"], ("yes", "qemu", "none seen")),
        ({"sys/hypervisor/type": "xen"}, ["hypervisor"], ("yes", "xen", "none seen")),
        ({"dmi/sys_vendor": "ASUS"}, ["aes"], ("no", UNKNOWN, "none seen")),
        ({".dockerenv": ""}, [], ("no", UNKNOWN, "docker")),
        ({"environ": "A=1\0container=lxc\0"}, [], ("no", UNKNOWN, "lxc")),
    ],
)
def test_what_a_host_runs_in(tmp_path, files, flags, expected):
    tree(tmp_path, {"environ": "", **files})
    places = {"dmi": tmp_path / "dmi", "root": tmp_path, "environ": tmp_path / "environ"}
    found = virtualisation_facts(cpu_flags=flags, **places)
    assert (found["hypervisor_flag"], found["hypervisor"], found["container"]) == expected


def test_a_disk(tmp_path, monkeypatch):
    monkeypatch.setattr(storage, "BLOCK", tmp_path)
    files = {
        "nvme0n1/device/model": "FAST 1TB   \n",
        "nvme0n1/device/serial": "S1\n",
        "nvme0n1/device/firmware_rev": "2B4Q\n",
        "nvme0n1/size": "2000\n",
        "nvme0n1/queue/rotational": "0\n",
        "nvme0n1/queue/write_cache": "write through\n",
    }
    tree(tmp_path, files)
    found = disk_facts("nvme0n1")
    assert (found["model"], found["firmware"], found["serial"]) == ("FAST 1TB", "2B4Q", "S1")
    assert (found["rotational"], found["write_cache"], found["bytes"]) == ("no", "write through", 1_024_000)
    assert found["scheduler"] == UNKNOWN


def test_a_partition_and_a_mapped_device_lead_to_whole_disks(tmp_path):
    devices = tmp_path / "devices"
    tree(devices, {"sda/size": "1", "sda/sda1/partition": "1", "sdb/size": "1", "dm-0/size": "1"})
    (devices / "dm-0/slaves").mkdir()
    (devices / "dm-0/slaves/sda1").symlink_to(devices / "sda/sda1")
    (devices / "dm-0/slaves/sdb").symlink_to(devices / "sdb")
    assert storage._leaves(devices / "sda/sda1") == ["sda"]
    assert sorted(storage._leaves(devices / "dm-0")) == ["sda", "sdb"]


NVME = {
    "smart_status": {"passed": True},
    "temperature": {"current": 41},
    "power_on_time": {"hours": 900},
    "nvme_smart_health_information_log": {"percentage_used": 3, "media_errors": 0, "temperature_sensors": [41, 50]},
}
ATA = {
    "smart_status": {"passed": False},
    "ata_smart_attributes": {
        "table": [{"id": 5, "raw": {"value": 8, "string": "8"}}, {"id": 1, "raw": {"value": 99}}, "odd"]
    },
}


def test_figures_of_smart():
    assert figures(NVME) == {
        "passed": True,
        "temperature_celsius": 41,
        "power_on_hours": 900,
        "percentage_used": 3,
        "media_errors": 0,
    }
    assert figures(ATA) == {"passed": False, "reallocated_sectors": 8}
    assert figures(["odd"]) == figures({"smart_status": "odd"}) == {}


@pytest.fixture
def smartctl(tmp_path, monkeypatch):
    """Put a smartctl on PATH that says what it is told to; ``None``: there is none."""

    def install(said):
        if said is not None:
            (tmp_path / "said").write_text(said, encoding="utf-8")
            program = tmp_path / "smartctl"
            program.write_text(f'#!/bin/sh\n[ "$*" = "--json --all /dev/sdz" ] && cat {tmp_path}/said\nexit 4\n')
            program.chmod(0o755)
        monkeypatch.setenv("PATH", f"{tmp_path}:/usr/bin:/bin" if said is not None else str(tmp_path))
        monkeypatch.setattr("shutil.which", _which_only(tmp_path))

    return install


def _which_only(folder):
    return lambda name, path=None: str(folder / name) if (folder / name).exists() and path is None else None


def test_smart_of_a_disk(smartctl):
    smartctl(json.dumps(NVME))
    assert smart_of("sdz") == figures(NVME)


@pytest.mark.parametrize(
    ("said", "why"),
    [
        (None, "unknown: smartctl is not installed"),
        ("", "unknown: smartctl: JSONDecodeError"),
        ("{}", "unknown: the device has no SMART"),
        (json.dumps({"smartctl": {"messages": [{"string": "Permission denied"}]}}), "unknown: Permission denied"),
    ],
)
def test_unknown_smart_says_why(smartctl, said, why):
    smartctl(said)
    assert smart_of("sdz") == why


@pytest.mark.usefixtures("state")
def test_this_host_as_it_is_stored(plan):
    """Every fact is there, known or unknown, and none is the host's name."""
    facts = host_facts(plan())
    assert json.loads(json.dumps(facts)) == facts
    assert set(facts) >= {"kernel", "cpu", "memory", "numa", "virtualisation", "disks", "cores", "distribution"}
    assert facts["disks"] == {}  # an emulated disk stands on none
    assert not any(leaf is None or leaf == "" for leaf in unknowns(facts))
    words = re.findall(r"[\w.-]+", json.dumps(facts))
    assert socket.gethostname() not in words


@pytest.mark.usefixtures("state")
def test_a_folder_of_this_machine_stands_on_what_the_kernel_says(plan):
    changes = (
        ('["hdd-7200", "ssd-sata"]', '"here"'),
        ('size = "1GiB"\nscheduler = "mq-deadline"\nfilesystem = "ext4"\n', ""),
    )
    queue = ("[queue]\nnr_requests = 64\n", ""), ('baseline = { device = "hdd-7200" }\n', "")
    for name, facts in host_facts(plan(*changes, *queue))["disks"].items():
        assert (storage.BLOCK / name).exists()
        assert set(facts) == set(disk_facts("no-such-disk"))


# What could keep a host's processors awake, on hosts of files.


CPUS = frozenset({0, 1})


@pytest.fixture
def host(tmp_path):
    def write_files(**files):
        for path, text in files.items():
            file = tmp_path / path.replace("__", "/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return tmp_path

    return write_files


POLL = {f"sys__devices__system__cpu__cpu{cpu}__cpuidle__state0__name": "POLL\n" for cpu in CPUS}
LATENCY = {"dev__cpu_dma_latency": ""}
GROUP_V1 = {"sys__fs__cgroup__cpu__cgroup.procs": "", "sys__fs__cgroup__cpu__cpu.idle": "0\n"}
GROUP_V2 = {"sys__fs__cgroup__cgroup.subtree_control": "cpu memory\n"}
BY_SESSION = {"proc__sys__kernel__sched_autogroup_enabled": "1\n"}


def test_the_kernel_s_own_polling_comes_first(host):
    assert means_here(CPUS, host(**POLL, **LATENCY, **GROUP_V1)).by == "kernel"


def test_an_idle_state_that_does_not_poll_is_none(host):
    name = "sys__devices__system__cpu__cpu1__cpuidle__state0__name"
    assert means_here(CPUS, host(**{**POLL, name: "WFI\n"}, **LATENCY)).by == "pollers"


def test_a_state_that_is_switched_off_is_none(host):
    off = {"sys__devices__system__cpu__cpu0__cpuidle__state0__disable": "1\n"}
    assert means_here(CPUS, host(**POLL, **LATENCY, **off)).by == "pollers"


@pytest.mark.parametrize(("files", "place"), [(GROUP_V1, "sys/fs/cgroup/cpu"), (GROUP_V2, "sys/fs/cgroup")])
def test_pollers_get_a_group_that_gives_way_as_a_whole(host, files, place, monkeypatch):
    monkeypatch.setattr("platform.release", lambda: "6.1.0-18-amd64")
    root = host(**files, **BY_SESSION)
    assert (means_here(CPUS, root).by, means_here(CPUS, root).group) == ("pollers", root / place)


def test_without_a_group_a_kernel_that_schedules_by_session_is_refused(host, monkeypatch):
    monkeypatch.setattr("platform.release", lambda: "5.10.0-28-amd64")  # its groups can't give way as a whole
    found = means_here(CPUS, host(**GROUP_V2, **BY_SESSION))
    assert not found.by
    assert "by session" in found.why
    assert "sched_autogroup_enabled=0" in found.remedy


def test_a_limit_on_cpu_time_is_refused_as_pollers_would_use_it_up(host):
    own = {"proc__self__cgroup": "0::/user/me\n", "sys__fs__cgroup__user__cpu.max": "50000 100000\n"}
    found = means_here(CPUS, host(**own))
    assert (found.by, found.why) == ("", "the control group /user limits CPU time, which pollers would use up")
    assert means_here(CPUS, host(**{**own, "sys__fs__cgroup__user__cpu.max": "max 100000\n"})).by == "pollers"


def test_a_limit_of_version_1(host):
    own = {"proc__self__cgroup": "3:cpu,cpuacct:/box\n", "sys__fs__cgroup__cpu__box__cpu.cfs_quota_us": "50000\n"}
    assert means_here(CPUS, host(**own)).why.startswith("the control group /box limits")


@given(text=st.text(alphabet="0:/.,cpu\nx ", max_size=40))
def test_whatever_the_kernel_says_of_groups_there_is_an_answer(text, tmp_path_factory):
    root = tmp_path_factory.mktemp("host")
    (root / "proc/self").mkdir(parents=True)
    (root / "proc/self/cgroup").write_text(text)
    found = means_here(CPUS, root)
    assert bool(found.by) != bool(found.why)
    assert bool(found.why) == bool(found.remedy)


def test_a_guest_is_known_by_the_processor_s_flag(host):
    assert is_guest(host(proc__cpuinfo="model name : x\nflags\t\t: fpu hypervisor avx\n"))
    assert not is_guest(host(proc__cpuinfo="flags : fpu avx\nmodel name : hypervisor\n"))
