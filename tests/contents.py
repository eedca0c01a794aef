"""What a disk may hold that no tool finds a signature of, each written as people and programs write it."""

import os
import struct
import subprocess
import tarfile
import zlib
from pathlib import Path

from tests.loops import loop_over

MIB = 1024**2


def write(device, offset, content):
    """Write through the device, down to what lies below it."""
    handle = os.open(device, os.O_WRONLY)
    try:
        os.pwrite(handle, content, offset)
        os.fsync(handle)
    finally:
        os.close(handle)


def random_bytes(device, size):
    """Plain dm-crypt, or LUKS with a detached header: as good as random from end to end."""
    for offset in range(0, size, MIB):
        write(device, offset, os.urandom(min(MIB, size - offset)))


def raw_tablespace(device, _size):
    """InnoDB's, as ``innodb_data_file_path = ...:64Mraw`` has it: pages of 16 KiB, most of them not used yet."""
    for page, kind in enumerate((8, 5, 3, 17855, 6, 7)):
        body = struct.pack(">IIIQHQI", page, 0xFFFFFFFF, 0xFFFFFFFF, 9000 + page, kind, 0, 0).ljust(16364, b"\0")
        write(device, page * 16384, struct.pack(">I", zlib.crc32(body)) + body + bytes(16))


def raw_tar(device, _size):
    """As ``tar --file /dev/sdb`` writes it, in the format of Unix version 7, which has no magic number."""
    with tarfile.open(device, "w:") as archive:
        archive.add(Path(__file__), "contents.py")
    with Path(device).open("rb") as written:
        header = bytearray(written.read(512))
    header[257:345] = bytes(88)  # magic, version, user and group, device numbers
    header[148:156] = b" " * 8
    header[148:156] = b"%06o\0 " % sum(header)
    write(device, 0, bytes(header))


def ext4_without_its_first_block(device, _size):
    subprocess.run(["mkfs.ext4", "-q", "-F", str(device)], check=True)
    write(device, 0, bytes(4096))


def filesystem_behind_a_lost_table(device, size):
    """In the first partition of a table that is no more: where a superblock lies within it."""
    image = Path(f"{device}".replace("/dev/", "/var/tmp/dbdyno-test-"))
    try:
        with image.open("wb") as made:
            made.truncate(size - 2 * MIB)
        subprocess.run(["mkfs.ext4", "-q", "-F", str(image)], check=True)
        with image.open("rb") as made:
            for offset in range(0, size - 2 * MIB, MIB):
                if any(piece := made.read(MIB)):
                    write(device, MIB + offset, piece)
    finally:
        image.unlink()


def text_at_10_mib(device, _size):
    write(device, 10 * MIB, b"the only copy of a thesis\n")


def second_half_a_filesystem(device, size):
    with loop_over(device, "--offset", str(size // 2)) as half:
        subprocess.run(["mkfs.ext4", "-q", "-F", half], check=True)


CONTENTS = {
    "random bytes": random_bytes,
    "a raw tablespace": raw_tablespace,
    "a raw tar": raw_tar,
    "an ext4 without its first block": ext4_without_its_first_block,
    "a filesystem behind a lost partition table": filesystem_behind_a_lost_table,
    "text at 10 MiB": text_at_10_mib,
    "a filesystem in its second half": second_half_a_filesystem,
}
