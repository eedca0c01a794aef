"""Whether a host takes a setting of its kernel, and whether that changes anything there, on made-up hosts."""

import os

import pytest

from dbdyno.stack import capabilities
from dbdyno.stack.layers.host_settings import SETTINGS, Refusal, why_not, why_without_effect
from dbdyno.study.mistakes import FIELDS_OF
from dbdyno.study.schema import HostSection, ServerSection

FILES = {
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
    "sys/kernel/mm/transparent_hugepage/defrag": "always defer [madvise] never\n",
    "proc/sys/vm/nr_hugepages": "0\n",
    "proc/sys/vm/swappiness": "60\n",
    "proc/sys/vm/dirty_ratio": "20\n",
    "proc/sys/vm/dirty_bytes": "0\n",
    "proc/sys/vm/dirty_background_ratio": "10\n",
    "proc/sys/vm/dirty_background_bytes": "0\n",
    "proc/sys/kernel/numa_balancing": "0\n",
    "proc/meminfo": "MemAvailable: 1048576 kB\nHugePages_Total:  10\nHugepagesize: 2048 kB\n",
    "proc/swaps": "Filename Type Size\n/swap file 100\n",
    "sys/devices/system/node/node0/cpulist": "0\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_governor": "powersave\n",
    "sys/devices/system/cpu/cpu0/cpufreq/scaling_available_governors": "performance powersave\n",
}


@pytest.fixture
def host(tmp_path, monkeypatch):
    """Make a host of these files, some of them otherwise, whatever others do to the settings of this one."""
    monkeypatch.setattr("dbdyno.stack.layers.host_settings._claim_of_another", lambda _: None)

    def make(**changed):
        for path, text in {**FILES, **{name.replace("__", "/"): text for name, text in changed.items()}}.items():
            file = tmp_path / path
            file.parent.mkdir(parents=True, exist_ok=True)
            if text is None:
                file.unlink(missing_ok=True)
            else:
                file.write_text(text)
        return tmp_path

    return make


def test_every_field_of_the_section_has_its_place_in_the_kernel_and_in_messages():
    fields = HostSection.model_fields.keys()
    assert fields - {"awake"} == SETTINGS.keys()
    assert {name for name, section in FIELDS_OF.items() if section == "host"} == fields


@pytest.mark.parametrize(
    ("name", "value", "why"),
    [
        ("transparent_hugepage", "always", None),
        ("transparent_hugepage_defrag", "defer+madvise", "this kernel offers always, defer, madvise, never"),
        ("cpu_governor", "performance", None),
        ("cpu_governor", "schedutil", "is schedutil, and this kernel offers performance, powersave"),
        ("vfs_cache_pressure", 50, "this kernel has no such setting in /proc/sys/vm"),
        ("io_uring_disabled", 2, "Linux 6.6 and later have it"),
        ("nr_hugepages", 100, None),
        ("nr_hugepages", 600, "600 pages of 2 MiB take 1.152 GiB more, and 1 GiB are free"),
        ("dirty_bytes", 8192, None),
    ],
)
def test_a_setting_is_taken_or_refused_with_the_reason(host, name, value, why):
    refusal = why_not(name, value, host())
    assert (refusal is None) == (why is None)
    assert why is None or why in refusal.why


def test_what_nobody_could_put_back_is_not_changed(host):
    root = host(proc__sys__vm__dirty_ratio="0\n")
    assert "dirty_bytes and dirty_ratio are both 0" in why_not("dirty_bytes", 8192, root).why


def test_a_file_that_is_read_only_is_refused(host, monkeypatch):
    root = host()
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert why_not("swappiness", 1, root).remedy == "run dbdyno on the host itself"
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert why_not("swappiness", 1, root).remedy == "run it with sudo"


def test_what_only_root_may_set_is_said_once_for_each_folder(host, monkeypatch):
    root = host()
    monkeypatch.setattr(os, "access", lambda *_: False)
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    refusals = {why_not(name, root=root) for name in ("swappiness", "dirty_ratio", "dirty_bytes")}
    assert refusals == {Refusal(f"only root may write to {root / 'proc/sys/vm'}", "run it with sudo")}


@pytest.mark.parametrize(
    ("values", "changed", "why"),
    [
        ({"swappiness": 1}, {}, ""),
        ({"swappiness": 1}, {"proc__swaps": "Filename Type Size\n"}, "this host has no swap"),
        ({"numa_balancing": 1}, {}, "this host has one NUMA node"),
        ({"numa_balancing": 1}, {"sys__devices__system__node__node1__cpulist": "1\n"}, ""),
        ({"transparent_hugepage_defrag": "defer"}, {}, ""),
        (
            {"transparent_hugepage_defrag": "defer", "transparent_hugepage": "never"},
            {},
            "transparent_hugepage is never",
        ),
        ({"dirty_background_ratio": 5}, {}, ""),
        ({"dirty_background_ratio": 20}, {}, "not less than dirty_ratio (20), so the kernel takes half of that"),
        ({"dirty_background_ratio": 20, "dirty_ratio": 40}, {}, ""),
        ({"dirty_background_bytes": 4096}, {}, ""),
    ],
)
def test_what_changes_nothing_is_known(host, values, changed, why):
    found = why_without_effect(next(iter(values)), values, limited=False, root=host(**changed))
    assert why in found
    assert bool(found) == bool(why)


def test_a_server_in_a_virtual_machine_has_one_node_and_any_priority():
    server = ServerSection(nice=-5, numa="bind:1")
    (node,) = [need for need in capabilities.placement(server, in_guest=True) if need.name == "node 1"]
    assert not node.ok
    assert node.detail == "is bind:1; a virtual machine has node 0 alone"
    (policy,) = [need for need in capabilities.placement(ServerSection(numa="local"), in_guest=True) if need.outcome]
    assert policy.outcome.how == "no effect"
