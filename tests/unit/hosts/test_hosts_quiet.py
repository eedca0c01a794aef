"""Nothing is asked of a host inside its measured window."""

import contextlib
import threading

import pytest

from dbdyno.hosts.contract import NotQuietError, check_not_measured, quiet
from tests.local_hosts import LocalHosts


@pytest.fixture
def hosts():
    with contextlib.closing(LocalHosts(["a", "b"])) as made:
        yield made


def test_a_question_inside_a_window_is_a_fault_of_ours_and_none_after_it(hosts, tmp_path):
    process = hosts.start("a", ["sleep", "1000"])
    with quiet():
        for call in (
            lambda: hosts.start("b", ["true"]),
            lambda: next(hosts.stream("a", process)),
            lambda: hosts.signal("a", process, 9),
            lambda: hosts.fetch("a", "/etc/hostname", tmp_path / "back", 100),
            lambda: hosts.put("a", tmp_path / "given", str(tmp_path / "there")),
        ):
            (tmp_path / "given").write_text("it")
            with pytest.raises(NotQuietError, match="inside a measured window"):
                call()
    assert hosts.signal("a", process, 9)
    assert not (tmp_path / "there").exists()


def test_a_window_of_one_host_leaves_the_others_free(hosts):
    with quiet("a"):
        hosts.start("b", ["true"])
        with pytest.raises(NotQuietError, match="start was asked of a inside"):
            hosts.start("a", ["true"])
        with pytest.raises(NotQuietError, match="was asked of the cluster"):
            check_not_measured("who is there")


def test_windows_of_threads_overlap_and_an_error_ends_one(hosts):
    begun, end = threading.Event(), threading.Event()

    def measure():
        with quiet("a"):
            begun.set()
            end.wait(60)

    other = threading.Thread(target=measure)
    other.start()
    begun.wait(60)
    with contextlib.suppress(RuntimeError), quiet("a"):
        raise RuntimeError
    with pytest.raises(NotQuietError):
        hosts.start("a", ["true"])
    end.set()
    other.join()
    hosts.start("a", ["true"])
