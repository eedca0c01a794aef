"""A disk image that boots by itself, made of this host's own programs: a kernel, busybox, sshd and MariaDB.

No package is installed: Debian's boot loader and qemu-img are unpacked into a folder of the test's own.
"""

import os
import shutil
import struct
import subprocess
from pathlib import Path

from dbdyno.stack.guest.kernels import archive
from tests.external_server import running_server

PACKAGES = ("extlinux", "syslinux-common", "qemu-utils")
_PARTITION_BYTES, _IMAGE_BYTES, _SECTOR = 1 << 20, 768 << 20, 512
_DRIVERS = ("virtio_pci", "virtio_blk", "virtio_net", "virtio_scsi", "ahci", "nvme", "sd_mod", "ext4")
_PROGRAMS = ("/usr/sbin/sshd", "/usr/sbin/mariadbd", "/usr/sbin/mke2fs", "/bin/bash")
_INITRAMFS = """\
#!/busybox sh
/busybox mount -t devtmpfs devtmpfs /dev
while read -r driver; do /busybox insmod "/drivers/$driver"; done < /drivers/order
for _ in $(/busybox seq 300); do [ -b /dev/sda1 ] && break; /busybox sleep 0.1; done
/busybox mount -t ext4 /dev/sda1 /root || /busybox poweroff -f
/busybox mount --move /dev /root/dev
exec /busybox switch_root /root /sbin/init
"""
_RC = """\
#!/bin/sh
mount -t proc proc /proc
mount -t sysfs sysfs /sys
mkdir -p /dev/pts /run/sshd
mount -t devpts devpts /dev/pts
ip link set lo up
ip link set eth0 up
ip address add 10.0.2.15/24 dev eth0
ip route add default via 10.0.2.2
/usr/sbin/sshd
"""
_FILES = {
    "etc/inittab": "::sysinit:/etc/rc\n::shutdown:/bin/umount -a -r\n",
    "etc/rc": _RC,
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nsshd:x:101:101::/run/sshd:/bin/false\n"
    "mysql:x:102:102::/mnt:/bin/false\n",
    "etc/group": "root:x:0:\nsshd:x:101:\nmysql:x:102:\n",
    "etc/shells": "/bin/sh\n",
    "etc/hosts": "127.0.0.1 localhost\n",
    "etc/ssh/sshd_config": "UsePAM no\nPermitRootLogin prohibit-password\nStrictModes no\nUseDNS no\n",
    "boot/extlinux.conf": "DEFAULT it\nLABEL it\nKERNEL /boot/vmlinuz\nINITRD /boot/initrd\n"
    "APPEND root=/dev/sda1 console=ttyS0 quiet no_timer_check panic=-1\n",
}
SETUP = (
    "/usr/sbin/mke2fs -q -t ext4 /dev/vda && mount -t ext4 /dev/vda /mnt && cp -a /srv/data /mnt"
    " && chown -R mysql /mnt/data && umount /mnt"
)
START = (
    "mount -t ext4 /dev/vda /mnt && (mariadbd --no-defaults --user=mysql --datadir=/mnt/data --socket=/mnt/data/s.sock"
    " --tmpdir=/mnt/data --innodb-buffer-pool-size=32M --skip-name-resolve > /mnt/log 2>&1 &)"
)


def run(*argv, **options):
    subprocess.run(list(map(str, argv)), check=True, capture_output=True, **options)


def packages(folder):
    """Unpack what the image is made with; ``False`` where the registry can't be reached."""
    done = subprocess.run(["apt-get", "download", *PACKAGES], cwd=folder, capture_output=True, check=False)
    for file in folder.glob("*.deb"):
        run("dpkg", "-x", file, folder / "tools")
    return done.returncode == 0


def make_image(folder, kernel, key):
    """Make ``folder/system.qcow2``, to which the public half of ``key`` opens root; returns its path."""
    root = folder / "root"
    for name in ("proc", "sys", "dev", "run", "mnt", "tmp", "root/.ssh", "bin", "sbin", "etc/ssh", "boot", "srv"):
        (root / name).mkdir(parents=True, exist_ok=True)
    for name, text in _FILES.items():
        (root / name).write_text(text)
    (root / "etc/rc").chmod(0o755)
    _programs(root)
    run("ssh-keygen", "-q", "-t", "ed25519", "-N", "", "-f", root / "etc/ssh/ssh_host_ed25519_key")
    shutil.copy(f"{key}.pub", root / "root/.ssh/authorized_keys")
    with running_server() as server:
        server.ask("CREATE DATABASE trials")
        server.ask("CREATE USER trial")
        server.ask("GRANT ALL ON *.* TO trial")
        server.process.terminate()
        server.process.wait()
        shutil.copytree(server.folder / "data", root / "srv/data")
    raw = _bootable(folder, root, kernel)
    run(folder / "tools/usr/bin/qemu-img", "convert", "-O", "qcow2", raw, folder / "system.qcow2")
    raw.unlink()
    shutil.rmtree(root)
    return folder / "system.qcow2"


def _programs(root):
    busybox = root / "bin/busybox"
    shutil.copy(shutil.which("busybox"), busybox)
    listed = subprocess.run([busybox, "--list"], capture_output=True, text=True, check=True).stdout.split()
    for name in listed:
        if not (root / "bin" / name).exists():
            (root / "bin" / name).symlink_to("busybox")
    (root / "sbin/init").symlink_to("/bin/busybox")
    for program in _PROGRAMS:
        listed = subprocess.run(["ldd", program], capture_output=True, text=True, check=True).stdout
        words = {word for word in listed.split() if word.startswith("/")}
        for path in map(Path, {program, *words}):
            (root / str(path)[1:]).parent.mkdir(parents=True, exist_ok=True)
            shutil.copy(path, root / str(path)[1:])
    shutil.copytree("/usr/share/mysql", root / "usr/share/mysql", ignore=shutil.ignore_patterns("*.sql"))


def _initramfs(kernel):
    lines = (kernel.modules / "modules.dep").read_text().splitlines()
    needs = {file: others.split() for file, _, others in (line.partition(":") for line in lines)}
    by_name = {Path(file).name.partition(".ko")[0].replace("-", "_"): file for file in needs}
    wanted = [by_name[name] for name in _DRIVERS if name in by_name]
    extra = [by_name[name] for name in ("crc32c_generic", "crc32c_intel") if name in by_name]  # that ext4 asks for
    order = dict.fromkeys(file for driver in (*extra, *wanted) for file in (*reversed(needs[driver]), driver))
    files = {
        "init": _INITRAMFS.encode(),
        "busybox": Path(shutil.which("busybox")).read_bytes(),
        "drivers/order": "".join(f"{Path(file).name}\n" for file in order).encode(),
        **{f"drivers/{Path(file).name}": (kernel.modules / file).read_bytes() for file in order},
    }
    return b"".join(archive(("dev", "root", "drivers"), files))


def _bootable(folder, root, kernel):
    """A raw disk with one partition, and Debian's boot loader on it."""
    raw, place = folder / "system.raw", folder / "mount"
    with raw.open("wb") as file:
        os.truncate(file.fileno(), _IMAGE_BYTES)
    # The boot loader reads neither newer features of ext4 nor the holes that mke2fs makes of zeros.
    size = (_IMAGE_BYTES - _PARTITION_BYTES) // 1024
    words = ["-q", "-t", "ext4", "-O", "^64bit,^metadata_csum", "-E", f"offset={_PARTITION_BYTES}"]
    run("mke2fs", *words, "-d", root, raw, f"{size}k")
    place.mkdir()
    run("mount", "-o", f"loop,offset={_PARTITION_BYTES},sizelimit={size * 1024}", raw, place)
    try:
        shutil.copy(kernel.image, place / "boot/vmlinuz")
        (place / "boot/initrd").write_bytes(_initramfs(kernel))
        shutil.copy(folder / "tools/usr/lib/syslinux/modules/bios/ldlinux.c32", place / "boot")
        run(folder / "tools/usr/bin/extlinux", "--install", place / "boot")
    finally:
        run("umount", place)
    first, sectors = _PARTITION_BYTES // _SECTOR, size * 1024 // _SECTOR
    entry = struct.pack("<B3sB3sII", 0x80, b"\xfe\xff\xff", 0x83, b"\xfe\xff\xff", first, sectors)
    code = (folder / "tools/usr/lib/syslinux/mbr/mbr.bin").read_bytes()
    with raw.open("r+b") as file:
        file.write(code[:440].ljust(446, b"\0") + entry + b"\0" * 48 + b"\x55\xaa")
    return raw
