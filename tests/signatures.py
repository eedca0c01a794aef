"""What marks a disk as somebody's, written byte by byte: no tool of LVM, RAID, LUKS, bcache or ZFS is needed."""

import struct
import zlib

SIZE = 64 * 1024**2


def dos(disk):
    entry = bytes([0x80, 0, 2, 0, 0x83, 0, 2, 0]) + struct.pack("<II", 2048, 65536)
    disk.seek(446)
    disk.write(entry + bytes(48) + b"\x55\xaa")


def gpt(disk):
    header = bytearray(
        b"EFI PART" + struct.pack("<IIIIQQQQ", 0x10000, 92, 0, 0, 1, SIZE // 512 - 1, 34, SIZE // 512 - 34)
    )
    header += b"dbdyno-test-disk" + struct.pack("<QIII", 2, 128, 128, zlib.crc32(bytes(128 * 128)))
    header[16:20] = struct.pack("<I", zlib.crc32(bytes(header)))
    disk.seek(446)
    protective = bytes([0, 0, 2, 0, 0xEE, 0xFF, 0xFF, 0xFF]) + struct.pack("<II", 1, SIZE // 512 - 1)
    disk.write(protective + bytes(48) + b"\x55\xaa")
    disk.seek(512)
    disk.write(header)


def lvm(disk):
    body = struct.pack("<I", 32) + b"LVM2 001" + b"dbdynodbdynodbdynodbdynodbdynodb"
    body += bytes(512 - 20 - len(body))
    crc = zlib.crc32(body, 0xF597A6CF ^ 0xFFFFFFFF) ^ 0xFFFFFFFF
    disk.seek(512)
    disk.write(b"LABELONE" + struct.pack("<QI", 1, crc) + body)


def raid_1(disk):
    """mdadm's format 1.2."""
    head = struct.pack("<IIII", 0xA92B4EFC, 1, 0, 0) + b"dbdyno-test-raid" + b"host:0".ljust(32, b"\0")
    disk.seek(4096)
    disk.write(head.ljust(144, b"\0") + struct.pack("<Q", 8))


def raid_0(disk):
    """mdadm's format 0.90, at the end."""
    disk.seek(SIZE - 65536)
    disk.write(struct.pack("<IIIIII", 0xA92B4EFC, 0, 90, 0, 0, 0x1234))


def luks_1(disk):
    disk.write(b"LUKS\xba\xbe" + struct.pack(">H", 1) + b"aes".ljust(32, b"\0"))


def luks_2(disk):
    disk.write(b"LUKS\xba\xbe" + struct.pack(">HQQ", 2, 16384, 1) + bytes(4096 - 24))


def bcache(disk):
    body = struct.pack("<QQ", 8, 1) + bytes.fromhex("c68573f64e1a45ca8265f57f48ba6d81") + b"dbdyno-test-uuid" * 2
    body = body.ljust(208 - 8, b"\0")  # as far as a superblock without buckets goes
    disk.seek(4096)
    disk.write(struct.pack("<Q", _crc64(body)) + body)


def _crc64(data):
    """CRC-64 of ECMA-182 as bcache takes it: from all ones to their complement."""
    crc = 0xFFFFFFFFFFFFFFFF
    for byte in data:
        crc ^= byte << 56
        for _ in range(8):
            crc = (crc << 1 ^ (0x42F0E1EBA9EA3693 if crc >> 63 else 0)) & 0xFFFFFFFFFFFFFFFF
    return crc ^ 0xFFFFFFFFFFFFFFFF


def zfs(disk):
    for number in range(16):
        disk.seek(128 * 1024 + number * 1024)
        disk.write(struct.pack("<QQQQ", 0x00BAB10C, 23, number + 4, 1))


SIGNATURES = {
    "dos": dos,
    "gpt": gpt,
    "LVM2_member": lvm,
    "linux_raid_member": raid_1,
    "linux_raid_member, at the end": raid_0,
    "crypto_LUKS": luks_1,
    "crypto_LUKS, version 2": luks_2,
    "bcache": bcache,
    "zfs_member": zfs,
}
