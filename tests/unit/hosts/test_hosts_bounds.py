"""What comes from a host that lies: each way has its bound, and the host is named."""

import contextlib
import os
import stat
from collections import namedtuple
from pathlib import Path

import pytest

from dbdyno.errors import HostError
from dbdyno.hosts import contract, host_side
from dbdyno.hosts.contract import LieError, Lines, ProgramEnd
from dbdyno.hosts.host_side import FolderSide, why_not_copied
from tests.local_hosts import LocalHosts
from tests.support import wait_for

CHUNK_BYTES = contract.CHUNK_BYTES


@pytest.fixture
def hosts():
    with contextlib.closing(LocalHosts(["a", "b"])) as made:
        yield made


def lying(hosts, **answers):
    """Have host b answer so."""
    for name, answer in answers.items():
        setattr(hosts._sides["b"], name, lambda *_, answer=answer: answer)
    return hosts


def test_a_file_without_end_is_given_up_and_nothing_of_it_stays(hosts, tmp_path):
    lying(hosts, content=bytes(CHUNK_BYTES))
    with pytest.raises(LieError, match=r"^b: /it is larger than its limit of 9 MiB"):
        hosts.fetch("b", "/it", tmp_path / "it", 9 * 1024**2)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_comes_in_drips_is_over_with_the_first(hosts, tmp_path):
    lying(hosts, content=b"x")
    hosts.fetch("b", "/it", tmp_path / "it", 9)
    assert (tmp_path / "it").read_bytes() == b"x"


def test_room_is_left_on_the_disk(hosts, tmp_path, monkeypatch):
    usage = namedtuple("usage", "total used free")  # noqa: PYI024  (as shutil's)
    monkeypatch.setattr(contract.shutil, "disk_usage", lambda _: usage(10**12, 10**12, contract.LEFT_BYTES))
    lying(hosts, content=b"x")
    with pytest.raises(HostError, match=r"there is no room for /it from b"):
        hosts.fetch("b", "/it", tmp_path / "it", 9)
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_comes_too_slowly_is_given_up(hosts, tmp_path, monkeypatch):
    times = iter(range(0, 10**6, 100))
    monkeypatch.setattr(contract, "monotonic", lambda: next(times))
    lying(hosts, content=bytes(CHUNK_BYTES))
    with pytest.raises(HostError, match=r"b: /it arrives too slowly"):
        hosts.fetch("b", "/it", tmp_path / "it", 10**12)


@pytest.mark.parametrize("answer", [None, "text", 5, [b"x"], bytearray(1), bytes(CHUNK_BYTES + 1)], ids=repr)
def test_what_is_no_part_of_a_file_is_refused(hosts, tmp_path, answer):
    lying(hosts, content=answer)
    with pytest.raises(LieError, match=r"^b: its answer is not a part"):
        hosts.fetch("b", "/it", tmp_path / "it", 10**9)


NO_NEWS = [
    None,
    (),
    ([], "x"),
    ([], 10**6),
    ([], -200),
    ([5], None),
    ([(True,)], None),
    ([(True, "text")], None),
    ([(True, bytes(CHUNK_BYTES + 1))], None),
    ([(True, b"x")] * 3, None),
    ("ab", None),
    ({}, 0),
]


@pytest.mark.parametrize("answer", NO_NEWS, ids=[str(number) for number in range(len(NO_NEWS))])
def test_what_no_program_can_have_written_is_refused(hosts, answer):
    lying(hosts, read=answer)
    with pytest.raises(LieError, match=r"^b: its answer (is|can't be)"):
        list(hosts.stream("b", "it"))


@pytest.mark.parametrize("answer", [None, 5, "", "x" * 101, b"x"], ids=repr)
def test_what_is_no_name_is_refused(hosts, tmp_path, answer):
    lying(hosts, start=answer, begin=answer)
    (tmp_path / "it").touch()
    with pytest.raises(LieError, match=r"^b: its answer is not a name"):
        hosts.start("b", ["true"])
    with pytest.raises(LieError, match=r"^b: its answer is not a name"):
        hosts.put("b", tmp_path / "it", "/it")


FOLDER = (".", stat.S_IFDIR | 0o700, 0, 0, 0, 0, "")


def file(name, size=10, mode=stat.S_IFREG | 0o600, link=""):
    return (name, mode, 0, 0, 0, size, link)


def link(name, to):
    return file(name, 0, stat.S_IFLNK | 0o777, to)


HOSTILE = {
    "nothing": ([], []),
    "no list": (5, []),
    "no entry": ([FOLDER, 5], []),
    "a number of another kind": ([FOLDER, ("x", "0", 0, 0, 0, 0, "")], []),
    "no folder": ([file(".")], []),
    "a name that leads up": ([FOLDER, file("../x")], []),
    "a name that leads up in it": ([FOLDER, file("a/../../x")], []),
    "a name from the root": ([FOLDER, file("/etc/cron.d/x")], []),
    "an empty name": ([FOLDER, file("")], []),
    "a name with a null": ([FOLDER, file("a\0b")], []),
    "a name twice": ([FOLDER, file("a"), file("a")], []),
    "a file below a link": ([FOLDER, link("a", "b"), file("a/x")], []),
    "a file below a file": ([FOLDER, file("a"), file("a/x")], []),
    "a file in a folder that is not there": ([FOLDER, file("a/x")], []),
    "a link from the root": ([FOLDER, link("a", "/etc")], []),
    "a link that leads up": ([FOLDER, link("a", "b/../../etc")], []),
    "a link to nothing": ([FOLDER, link("a", "")], []),
    "a device": ([FOLDER, file("a", 0, stat.S_IFBLK | 0o600)], []),
    "a pipe": ([FOLDER, file("a", 0, stat.S_IFIFO | 0o600)], []),
    "rights of root": ([FOLDER, file("a", 10, stat.S_IFREG | 0o4755)], []),
    "a size below 0": ([FOLDER, file("a", -1)], []),
    "a size beyond any": ([FOLDER, file("a", 2**62)], []),
    "pieces that are none": ([FOLDER, file("a")], ["x"]),
    "a piece of nothing": ([FOLDER, file("a")], [("b", 0, 1)]),
    "a piece beyond its file": ([FOLDER, file("a")], [("a", 8, 4)]),
    "a piece without bytes": ([FOLDER, file("a")], [("a", 0, 0)]),
    "a piece twice": ([FOLDER, file("a")], [("a", 0, 5), ("a", 0, 5)]),
    "a piece below 0": ([FOLDER, file("a")], [("a", -5, 5)]),
    "a large piece": ([FOLDER, file("a", 10**9)], [("a", 0, 10**8)]),
}


@pytest.mark.parametrize("kind", HOSTILE)
def test_a_folder_that_no_host_can_have_reaches_no_other(hosts, tmp_path, kind):
    entries, pieces = HOSTILE[kind]
    lying(hosts, entries=entries, pieces=pieces)
    with pytest.raises(LieError, match=r"^b: /it can't be copied"):
        hosts.copy("b", "/it", "a", str(tmp_path / "it"), 10**9, lambda *_: None)
    assert list(tmp_path.iterdir()) == []
    if why_not_copied(entries):
        with pytest.raises(
            OSError, match=r"it is|it holds|\.: |a: "
        ):  # whoever asks: the host itself makes none either
            FolderSide().begin_folder(str(tmp_path / "it"), entries, 0)
        assert list(tmp_path.iterdir()) == []


def test_a_folder_larger_than_it_can_be_is_not_begun(hosts, tmp_path):
    (tmp_path / "it").mkdir()
    (tmp_path / "it/file").write_bytes(bytes(1000))
    with pytest.raises(LieError, match=r"b: .*/it holds 1000 B, more than its limit of 999 B"):
        hosts.copy("b", str(tmp_path / "it"), "a", str(tmp_path / "other"), 999, lambda *_: None)


@pytest.mark.parametrize("content", [bytes(11), b"text" * 2**20], ids=["long", "much"])
def test_a_piece_that_is_not_what_was_asked_for_is_not_written(hosts, tmp_path, content):
    lying(hosts, entries=[FOLDER, file("a")], pieces=[("a", 0, 10)], piece=content)
    with pytest.raises(HostError, match=r"b to a: "):
        hosts.copy("b", "/it", "a", str(tmp_path / "it"), 10**9, lambda *_: None)
    assert list(tmp_path.iterdir()) == []


def lines_of(hosts, script, **bounds):
    process = hosts.start("b", ["sh", "-c", script])
    return Lines(hosts, "b", process, **{"line_bytes_max": 100, "lines_max": 10, "bytes_max": 1000, **bounds})


@pytest.mark.parametrize(
    "script",
    ["head -c 101 /dev/zero", "head -c 101 /dev/zero; echo", "yes", "yes >&2", "head -c 1001 /dev/zero >&2"],
)
def test_more_than_a_program_says_is_a_lie(hosts, script):
    with pytest.raises(LieError, match=r"^b: says too much"):
        list(lines_of(hosts, script).read())


def test_lines_come_whole_and_its_end_is_said(hosts):
    said = lines_of(hosts, "printf 'a\\nbc'; sleep .1; printf 'd\\n\\nrest'; echo why >&2; exit 3")
    assert list(said.read()) == [b"a", b"bcd", b""]
    assert (said.code, said.why_ended()) == (3, "why")
    silent = lines_of(hosts, "kill -40 $$")
    assert list(silent.read()) == []
    assert silent.why_ended() == "killed by signal 40"


def test_what_brings_something_may_say_more(hosts):
    said, read = lines_of(hosts, "seq 100"), []
    for line in said.read():
        read.append(line)
        said.renew()
    assert len(read) == 100


def test_a_program_s_output_is_bounded_where_nobody_reads_it(hosts, monkeypatch):
    monkeypatch.setattr(host_side, "OUTPUT_BYTES_MAX", 1024**2)
    process = hosts.start("b", ["sh", "-c", "head -c 5000000 /dev/zero; echo $? >&2"])
    program = hosts._sides["b"]._programs[process]
    wait_for(lambda: program.process.poll() is not None)
    assert os.fstat(program.files[0]).st_blocks * 512 <= 1024**2
    *said, ended = hosts.stream("b", process)
    assert sum(len(one.content) for one in said if not one.to_error) == 1024**2
    assert (b"".join(one.content for one in said if one.to_error)[-2:], ended) == (b"1\n", ProgramEnd(0))


def test_programs_that_have_ended_hold_no_files(hosts):
    before = len(list(Path("/proc/self/fd").iterdir()))
    for _ in range(20):
        process = hosts.start("b", ["true"])  # of which nobody asks how it ended
        program = hosts._sides["b"]._programs[process]
        wait_for(lambda: program.process.poll() is not None)  # noqa: B023  (called here)
    last = hosts.start("b", ["echo", "it"])
    assert list(hosts.stream("b", last))[-1] == ProgramEnd(0)
    assert list(hosts.stream("b", last)) == [ProgramEnd(0)]
    assert len(list(Path("/proc/self/fd").iterdir())) <= before + 2
