"""Restart this host with one of its installed kernels: by GRUB, for one start, or by kexec.

It runs on the host. What GRUB starts by default stays as it is: after a crash, or a cut of the power, the host comes up
as it always does. Of ``grub.cfg``, a script, only the entries are read: their names, and the kernel that each loads.
"""

import os
import re
import shlex
import subprocess
from collections.abc import Collection, Iterator
from dataclasses import dataclass
from pathlib import Path

from dbdyno.errors import HostError, TrialError
from dbdyno.model.printable import short
from dbdyno.stack.tools import run_tool, tool_path

ROOT = Path("/")
_CONFIGS = ("boot/grub/grub.cfg", "boot/grub2/grub.cfg")
_EFI_CONFIGS = "boot/efi/EFI/*/grub.cfg"  # of distributions that have no other where firmware is UEFI
_SNIPPETS = "boot/loader/entries"  # of distributions whose grub.cfg only says ``blscfg``
_CONFIG_BYTES_MAX = 4 * 1024**2
_IMAGES = ("vmlinuz-", "vmlinux-", "bzImage-", "kernel-", "linux-", "Image-", "image-")
_INITRDS = ("initrd.img-{}", "initramfs-{}.img", "initrd-{}", "initramfs-{}")
_IDENTIFIERS = ("--id", "$menuentry_id_option", "${menuentry_id_option}")
_OTHER_SYSTEMS = "osprober-"  # begins the identifiers of entries that grub-mkconfig makes for other systems
_NOT_FOR_MEASURING = {
    "single",
    "recovery",
    "rescue",
    "emergency",
    "systemd.unit=rescue.target",
    "systemd.unit=emergency.target",
}
# GRUB reads these and never writes to them (grub-mkconfig's own list): volumes put together, and some filesystems.
_READ_ONLY_TO_GRUB = {"lvm", "diskfilter", "btrfs", "cpiofs", "newc", "odc", "romfs", "squash4", "tarfs", "zfs"}
_PATIENCE_SECONDS = 30.0
_ANSWER_SECONDS = 1  # before the restart begins: the answer to the coordinator is on its way


@dataclass(frozen=True)
class Entry:
    """One entry of GRUB's menu."""

    path: tuple[str, ...]  # the names of the menus around it, and its own
    kernel: str  # the version that the name of its kernel's file has
    file: str  # that file, as GRUB finds it

    @property
    def name(self) -> str:
        """As ``grub-reboot`` takes it."""
        return ">".join(self.path)


def running_kernel() -> dict[str, str]:
    """The kernel that runs, and which start of this host it is."""
    boot = Path("/proc/sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    return {"kernel": os.uname().release, "boot": boot}


def missing_requirements(kernels: Collection[str], way: str, root: Path = ROOT) -> list[str]:
    """Why this host can't be restarted with one of these kernels; nothing if it can with each."""
    if os.geteuid() != 0:
        return ["its ssh user is not root, and only root can restart the host"]
    reasons = []
    for kernel in kernels:
        try:
            _commands(kernel, way, root)
        except HostError as error:
            reasons.append(str(error))
    return list(dict.fromkeys(reasons))


def restart_with(kernel: str, way: str, root: Path = ROOT) -> None:
    """Restart this host with a kernel, in a moment; what was written is on disk. Raises ``HostError``."""
    prepare, begin = _commands(kernel, way, root)
    os.sync()
    _output(prepare)
    later = f"(sleep {_ANSWER_SECONDS}; exec {shlex.join(begin)}) > /dev/null 2>&1 &"
    subprocess.run(["sh", "-c", later], stdin=subprocess.DEVNULL, start_new_session=True, check=True)


def clear_next_entry() -> None:
    """Have GRUB start its default from now on, also where the chosen entry was not used. Raises ``HostError``."""
    if editor := _program("grub-editenv", "grub2-editenv"):
        _output([editor, "-", "unset", "next_entry"])


def _commands(kernel: str, way: str, root: Path) -> tuple[list[str], list[str]]:
    """What names the kernel of the next start, and what begins that start. Raises ``HostError``."""
    systemctl = _program("systemctl")
    if way == "kexec":
        kexec = _program("kexec")
        if not kexec or not systemctl:
            raise HostError('kexec or systemctl is not installed; install kexec-tools, or give boot = "grub"')
        image, initrd = _files(kernel, root)
        load = [kexec, "--load", str(image), "--reuse-cmdline", *([f"--initrd={initrd}"] if initrd else [])]
        return load, [systemctl, "--no-wall", "kexec"]
    chooser = _program("grub-reboot", "grub2-reboot")
    if not chooser:
        raise HostError('grub-reboot is not installed; give boot = "kexec", or a program of yours that restarts it')
    config, text = _config(root)
    _check_one_start(config, text)
    entries = list(entries_of(text, root))
    entry = next((entry for entry in entries if entry.kernel == kernel), None)
    if entry is None:
        known = ", ".join(dict.fromkeys(entry.kernel for entry in entries)) or "none"
        raise HostError(f"GRUB's menu has no entry for kernel {kernel}; it has {short(known)}")
    if any(">" in part for part in entry.path):
        raise HostError(f"GRUB's entry for kernel {kernel} has a > in its name, and so can't be chosen; rename it")
    return [chooser, entry.name], [systemctl, "--no-wall", "reboot"] if systemctl else ["reboot"]


def _program(*names: str) -> str:
    """The first of these that is installed; else nothing."""
    return next(filter(None, map(tool_path, names)), "")


def _output(argv: list[str]) -> str:
    """What a program prints. Raises ``HostError`` where it fails."""
    try:
        return run_tool(argv, timeout_seconds=_PATIENCE_SECONDS)
    except TrialError as error:
        raise HostError(str(error)) from None


def _files(kernel: str, root: Path) -> tuple[Path, Path | None]:
    """The kernel's file, and that of its first root filesystem where it has one. Raises ``HostError``."""
    boot = root / "boot"
    image = next((path for start in _IMAGES if (path := boot / f"{start}{kernel}").is_file()), None)
    if image is None:
        raise HostError(f"{boot} has no file of kernel {kernel}; install that kernel")
    initrd = _initrd(kernel, boot)
    if initrd is None and (ours := _initrd(os.uname().release, boot)):
        raise HostError(f"{boot} has no initrd for kernel {kernel}, and the running kernel has {ours.name}; create one")
    return image, initrd


def _initrd(kernel: str, boot: Path) -> Path | None:
    return next((path for name in _INITRDS if (path := boot / name.format(kernel)).is_file()), None)


# GRUB's menu.


def _config(root: Path) -> tuple[Path, str]:
    """GRUB's configuration: the file, and what it says. Raises ``HostError``."""
    places = [*(root / name for name in _CONFIGS), *sorted(root.glob(_EFI_CONFIGS))]
    config = next((path for path in places if path.is_file()), None)
    if config is None:
        names = " or ".join(f"/{name}" for name in _CONFIGS)
        raise HostError(f'there is no {names}, so GRUB does not start this host; give boot = "kexec"')
    try:
        with config.open(encoding="utf-8", errors="replace") as file:
            return config, file.read(_CONFIG_BYTES_MAX)
    except OSError as error:
        raise HostError(f"{config}: {error.strerror}") from None


def _check_one_start(config: Path, text: str) -> None:
    """Raise ``HostError`` where GRUB would not use a chosen entry, or would use it again after each reset.

    GRUB forgets the entry by writing to its environment block before it starts the kernel. What it can't write to it
    would read again, so a kernel that crashes would be started for ever.
    """
    if "next_entry" not in text:
        raise HostError(
            f"{config} does not read next_entry, so grub-reboot has no effect; generate it with grub-mkconfig"
        )
    block, probe = config.with_name("grubenv"), _program("grub-probe", "grub2-probe")
    try:
        if not probe or "env_block=" in block.read_text(encoding="utf-8", errors="replace"):  # outside the filesystem
            return
        kinds = _output([probe, "--target=abstraction", str(block)]).split()
        kinds += _output([probe, "--target=fs", str(block)]).split()
    except (OSError, HostError):
        return  # nothing says that it can't be written
    if _READ_ONLY_TO_GRUB & set(kinds):
        place = f"{block} lies on {', '.join(sorted(kinds))}, to which GRUB can't write"
        raise HostError(f'{place}: a kernel that crashes would be started again and again; give boot = "kexec"')


def entries_of(text: str, root: Path = ROOT) -> Iterator[Entry]:
    """Each entry that starts this system with a kernel that is here, the first of a kernel first."""
    entries = list(menu_entries(text))
    if "blscfg" in text:
        for path in sorted((root / _SNIPPETS).glob("*.conf"), key=_newest_last, reverse=True):
            entries += _snippet(path)
    boot = root / "boot"
    for entry in entries:
        # GRUB's path may begin with a device or a subvolume, or the filesystem may be that of /boot alone.
        if (boot / entry.file.rpartition("/")[2]).is_file() or (boot / entry.file.lstrip("/")).is_file():
            yield entry


def menu_entries(text: str) -> Iterator[Entry]:
    """The entries of this system that the text of ``grub.cfg`` has, in its order."""
    menus: list[str] = []  # that are open here, and the entry
    kinds: list[str] = []  # of each brace that is open: "submenu", "menuentry", or "" of anything else
    for line in text.splitlines():
        words = _words(line)
        if not words:
            continue
        if words[0] in {"menuentry", "submenu"} and words[-1] == "{":
            kinds.append(words[0])
            menus.append(_menu_name(words))
        elif words[-1] == "{":
            kinds.append("")
        elif words == ["}"]:
            if kinds and kinds.pop():
                menus.pop()
        elif "menuentry" in kinds and words[0] in {"linux", "linux16", "linuxefi"} and len(words) > 1:
            kernel, is_other = _version(words[1]), any(name.startswith(_OTHER_SYSTEMS) for name in menus)
            if kernel and not is_other and not _NOT_FOR_MEASURING & set(words[2:]):
                yield Entry(tuple(menus), kernel, words[1])


def _words(line: str) -> list[str]:
    """The words of a line; what a shell would not take is split at blanks."""
    try:
        return shlex.split(line, comments=True)
    except ValueError:
        return line.split()


def _menu_name(words: list[str]) -> str:
    """By what an entry is chosen: its identifier, which other languages and versions leave alone, else its title."""
    for option in _IDENTIFIERS:
        if option in words[:-2]:
            return words[words.index(option) + 1]
    return words[1]


def _version(file: str) -> str:
    """The version in the name of a kernel's file; empty where it has none."""
    name = re.sub(r"\.(signed|efi\.signed|efi|old)$", "", file.rpartition("/")[2])
    return next((name.removeprefix(start) for start in _IMAGES if name.startswith(start)), "")


def _newest_last(path: Path) -> list[tuple[int, str]]:
    """The order of GRUB's menu, backwards: numbers by their value, and a name with ``~`` before the same without."""
    parts = re.split(r"(\d+)", path.stem.replace("~", "\0") + "\1")
    return [(int(part), "") if part.isascii() and part.isdigit() else (0, part) for part in parts]


def _snippet(path: Path) -> Iterator[Entry]:
    """The entry of a file of the Boot Loader Specification, which is named by that file."""
    try:
        with path.open(encoding="utf-8", errors="replace") as file:
            pairs = [words for line in file.read(_CONFIG_BYTES_MAX).splitlines() if (words := line.split(None, 1))]
    except OSError:
        return
    fields = {words[0]: words[-1].strip() for words in pairs}
    options = {option for words in pairs if words[0] == "options" for option in words[-1].split()}
    file_name = fields.get("linux", "")
    kernel = _version(file_name) or fields.get("version", "")
    if kernel and "rescue" not in path.stem and not _NOT_FOR_MEASURING & options:
        yield Entry((path.stem,), kernel, file_name)
