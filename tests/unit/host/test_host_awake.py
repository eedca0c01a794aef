"""What could keep a host's processors awake, on hosts of files."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dbdyno.host.processor import is_guest, means_here

CPUS = frozenset({0, 1})


@pytest.fixture
def host(tmp_path):
    def made(**files):
        for path, text in files.items():
            file = tmp_path / path.replace("__", "/")
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return tmp_path

    return made


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
