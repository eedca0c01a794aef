"""A real device is erased only if the study names it, its serial matches, and it is empty or bears dbdyno's mark."""

import os
import subprocess
import tempfile
from contextlib import contextmanager
from pathlib import Path

import pytest

from dbdyno.errors import HostError
from dbdyno.stack.emptiness import MIB, PAGE, WHOLE_BYTES_MAX, Content, known_places, leave_mark
from dbdyno.stack.erase import Erasing, check_erasable
from tests.contents import CONTENTS, write
from tests.loops import lent_loop
from tests.support import dbdyno, study_text, with_own_mounts

pytestmark = pytest.mark.host

SMALL = 32 * MIB
LARGE = 8 * 1024 * MIB  # a sparse file


@pytest.fixture
def file():
    """In memory: every look at a disk has what was written to it brought down to what lies below it."""
    with tempfile.TemporaryDirectory(prefix="dbdyno-test-", dir="/dev/shm") as folder:
        yield Path(folder) / "disk"


def check(device, serial, erase=frozenset()):
    return check_erasable(device, str(serial), Erasing(frozenset(erase)))[1].why


def marked(device, file):
    """As a trial leaves it."""
    handle = os.open(device, os.O_RDWR)
    reading = os.open(device, os.O_RDONLY | os.O_DIRECT)
    with Content(reading) as content:
        leave_mark(handle, content, str(file), "a-uuid")
    os.close(reading)
    os.close(handle)


@contextmanager
def refused(device, serial, says):
    """It is refused, and not a byte of it is changed."""
    before = subprocess.check_output(["sha256sum", device])
    with pytest.raises(HostError, match=says):
        check(device, serial)
    yield
    assert subprocess.check_output(["sha256sum", device]) == before


def test_an_empty_disk_with_the_right_serial_may_be_erased(file):
    with lent_loop(file) as device:
        identity, proof = check_erasable(device, str(file), Erasing())
        assert (identity.serial, identity.size_bytes) == (str(file), 512 * MIB)
        assert proof.why == "it is empty (all of it was read)"


def test_a_large_empty_disk_is_looked_at_in_places(file):
    with lent_loop(file, LARGE) as device:
        assert "917 other places were read: if 1 % of it held anything" in check(device, file)


def test_a_disk_that_was_written_with_what_discarded_flash_reads_as_is_empty(file):
    with lent_loop(file, SMALL) as device:
        write(device, 20 * MIB, b"\xff" * MIB)
        assert "it is empty" in check(device, file)
        write(device, 20 * MIB, b"\xff" * 100)
        assert "it is empty" in check(device, file)
        write(device, 20 * MIB, b"\xff" * 100 + b"\0")
        with pytest.raises(HostError, match=f"without a known signature at offset {20 * MIB}"):
            check(device, file)


@pytest.mark.drawn(9)
@pytest.mark.parametrize("name", CONTENTS)
@pytest.mark.parametrize("size", [SMALL, LARGE])
def test_content_without_a_signature_is_found_by_reading(file, name, size):
    """Also on a disk that is not read whole; what fills a disk is made on its first part there."""
    with lent_loop(file, size) as device:
        CONTENTS[name](device, size if name == "a filesystem in its second half" else SMALL)
        with pytest.raises(HostError, match="content without a known signature at offset"):
            check(device, file)


@pytest.mark.parametrize("offset", [0, 1, SMALL // 2 + 12345, SMALL - 1])
def test_a_byte_anywhere_on_a_small_disk_is_found(file, offset):
    with lent_loop(file, SMALL) as device:
        write(device, offset, b"x")
        with refused(device, file, "content without a known signature"):
            pass


def test_a_hundredth_of_a_large_disk_is_found_wherever_it_is(file):
    with lent_loop(file, LARGE) as device:
        for start in (LARGE // 3, LARGE // 2 + 12345, LARGE - LARGE // 20):
            with file.open("r+b") as backing:
                backing.seek(start)
                backing.write(os.urandom(LARGE // 100))
            with pytest.raises(HostError, match="content without a known signature"):
                check(device, file)
            subprocess.run(["fallocate", "--punch-hole", "-o0", "-l", str(LARGE), file], check=True)


def test_a_copy_of_a_superblock_on_a_large_disk_is_found(file):
    with lent_loop(file, LARGE) as device, file.open("r+b", buffering=0) as backing:
        reading = os.open(device, os.O_RDONLY | os.O_DIRECT)
        with Content(reading) as content:
            for offset, _ in known_places(LARGE):
                os.pwrite(backing.fileno(), b"copy", offset)
                assert content.first_data(known_places(LARGE)) == offset
                os.pwrite(backing.fileno(), bytes(4), offset)
        os.close(reading)


def test_what_was_written_through_another_loop_device_is_found(file):
    with lent_loop(file, SMALL) as device:
        assert "it is empty" in check(device, file)
        with file.open("r+b") as backing:
            backing.seek(30 * MIB)
            backing.write(b"written to the file below it")
        with pytest.raises(HostError, match=f"at offset {30 * MIB}"):
            check(device, file)


@pytest.mark.parametrize("size", [SMALL, SMALL + 512, WHOLE_BYTES_MAX + MIB + 512, LARGE])
def test_a_disk_with_the_mark_may_be_erased(file, size):
    with lent_loop(file, size) as device:
        for offset in (5 * MIB, size // 2, size - 5 * MIB):
            write(device, offset, os.urandom(MIB))
        marked(device, file)
        assert "it holds what a trial left, unchanged" in check(device, file)
        found = subprocess.run(["wipefs", "--no-act", device], check=True, capture_output=True, text=True)
        assert found.stdout == ""


@pytest.mark.drawn(4)
@pytest.mark.parametrize("name", CONTENTS)
def test_what_others_wrote_after_the_mark_is_found(file, name):
    with lent_loop(file, SMALL) as device:
        write(device, 30 * MIB, os.urandom(MIB))
        marked(device, file)
        CONTENTS[name](device, SMALL)
        with refused(device, file, "holds data: (content without a known|it has been written to at offset)"):
            pass


@pytest.mark.drawn(3)
@pytest.mark.parametrize("offset", [0, 100, PAGE, 1000 * PAGE + 1, SMALL - PAGE, SMALL - 1])
def test_one_byte_spoils_the_mark(file, offset):
    with lent_loop(file, SMALL) as device:
        write(device, 20 * MIB, os.urandom(MIB))
        marked(device, file)
        with file.open("r+b") as backing:
            backing.seek(offset)
            was = backing.read(1)[0]
            backing.seek(offset)
            backing.write(bytes([was ^ 1]))
        with refused(device, file, "holds data"):
            pass


@pytest.mark.parametrize("make", [["mkfs.ext4", "-q", "-F"], ["mkfs.btrfs", "-q", "-f", "--mixed"], ["mkswap"]])
def test_a_filesystem_that_others_made_after_the_mark_is_found(file, make):
    with lent_loop(file, SMALL) as device:
        marked(device, file)
        subprocess.run([*make, device], check=True, capture_output=True)
        with refused(device, file, "holds data: a .* signature"):
            pass


def test_the_mark_of_another_disk_is_none(file, tmp_path):
    with lent_loop(file, SMALL) as device:
        marked(device, file)
        content = file.read_bytes()
    with lent_loop(tmp_path / "copy", SMALL) as device:
        write(device, 0, content)
        with pytest.raises(HostError, match="holds data: content without a known signature at offset 0"):
            check(device, tmp_path / "copy")


def test_another_serial_is_refused(file):
    with lent_loop(file) as device, pytest.raises(HostError, match="not 'WD-1234' as the study says"):
        check(device, "WD-1234")


def test_a_name_without_a_serial_is_refused(file):
    with lent_loop(file) as device, pytest.raises(HostError, match="which its name does not hold"):
        check_erasable(device, None, Erasing())


@pytest.mark.parametrize("make", [["mkfs.ext4", "-q"], ["mkfs.ext2", "-q"], ["mkswap"]])
def test_a_signature_is_refused_unless_erasing_is_asked_for(file, make):
    with lent_loop(file, SMALL) as device:
        subprocess.run([*make, str(device)], check=True, capture_output=True)
        with pytest.raises(HostError, match=r"holds data: .*--erase"):
            check(device, file)
        with pytest.raises(HostError, match="holds data"):
            check(device, file, {"another"})
        assert "which --erase allows" in check(device, file, {str(file)})


def test_a_partition_table_is_refused(file):
    with lent_loop(file) as device:
        entry = bytes([0x80, 0, 2, 0, 0x83, 0, 2, 0]) + (2048).to_bytes(4, "little") + (4096).to_bytes(4, "little")
        device.write_bytes(bytes(446) + entry + bytes(48) + b"\x55\xaa")  # a DOS partition table with one partition
        with pytest.raises(HostError, match="dos"):
            check(device, file)


def test_a_mounted_disk_is_refused_even_with_erase(file, tmp_path):
    with lent_loop(file) as device:
        subprocess.run(["mkfs.ext4", "-q", str(device)], check=True)
        place = tmp_path / "place"
        place.mkdir()
        subprocess.run(["mount", str(device), str(place)], check=True)
        try:
            with pytest.raises(HostError, match="is mounted at"):
                check(device, file, {str(file)})
        finally:
            subprocess.run(["umount", str(place)], check=True)


def test_a_study_on_a_real_device_runs_twice_as_it_leaves_its_mark(state, study_file, tmp_path):
    file = tmp_path / "disk"
    with lent_loop(file) as device:
        text = study_text(device=f'"{device}"', stack=f'serial = "{file}"', scheduler='"mq-deadline"', blocks=1)
        text = text.replace('size = "512MiB"\n', "")
        for run, why in (("first", "it is empty"), ("second", "it holds what a trial left, unchanged")):
            planned = dbdyno("plan", study_file(text), state=state)
            assert f"ERASED: {device}, all that is on it ({file}; {why} (all of it was read)" in planned.stdout
            done = dbdyno("run", study_file(text), "--into", tmp_path / run, state=state)
            assert done.returncode == 0, done.stdout + done.stderr
            found = subprocess.run(["wipefs", "--no-act", str(device)], check=True, capture_output=True, text=True)
            assert found.stdout == ""
        write(device, 300 * MIB, b"somebody's")
        refused = dbdyno("run", study_file(text), "--into", tmp_path / "third", state=state)
        assert refused.returncode == 2
        assert "since a trial of dbdyno's left it" in refused.stderr


def test_a_serial_to_be_erased_that_no_disk_has_is_refused(state, study_file, tmp_path, file):
    with lent_loop(file, SMALL) as device:
        real = study_text(device=f'"{device}"', stack=f'serial = "{file}"').replace('size = "512MiB"\n', "")
        for text, given, says in (
            (real, f"{file}s", f"no disk of this study has that serial; it has '{file}'; Did you mean \"{file}\"?"),
            (study_text(), "WD-1234", "--erase 'WD-1234': this study erases no real device; leave it out"),
        ):
            for verb in (["run", "--into", tmp_path / "run"], ["aa", "--into", tmp_path / "run"], ["plan"]):
                done = dbdyno(*verb, study_file(text), "--erase", given, state=state)
                assert done.returncode == 2
                assert says in done.stdout + done.stderr


def test_a_plan_in_a_container_says_that_it_sees_no_other_processes(state, study_file, file):
    text = study_text(device='"{}"', stack=f'serial = "{file}"').replace('size = "512MiB"\n', "")
    says = "processes outside this container, which may use it, can't be seen"
    with lent_loop(file) as device:
        study = study_file(text.format(device))
        assert says not in dbdyno("plan", study, state=state).stdout
        container = with_own_mounts('exec "$@"', options=("--pid", "--fork", "--mount-proc"))
        assert says in dbdyno("plan", study, state=state, prefix=container).stdout
