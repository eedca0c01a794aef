"""Host facts from made-up trees: what is there is told, what is not is unknown."""

import json
import os
import re
import socket
from pathlib import Path

import pytest

from dbdyno.host import storage
from dbdyno.host.processor import memory_facts, numa_facts, parameters, processor_facts, virtualisation_facts
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
