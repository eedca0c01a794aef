"""Which entry of GRUB's menu starts a kernel, by menus as distributions write them; and how it is begun."""

import os
import stat
import subprocess

import pytest

from dbdyno.errors import HostError
from dbdyno.stack import boot_entry
from dbdyno.stack.boot_entry import entries_of, menu_entries, missing_requirements, restart_with
from tests.support import wait_for

DEBIAN = """\
### BEGIN /etc/grub.d/00_header ###
if [ -s $prefix/grubenv ]; then
  set have_grubenv=true
  load_env
fi
if [ "${next_entry}" ] ; then
   set default="${next_entry}"
   set next_entry=
   save_env next_entry
   set boot_once=true
else
   set default="0"
fi
function load_video {
  if [ x$feature_all_video_module = xy ]; then
    insmod all_video
  else
    insmod efi_gop
  fi
}
menuentry 'Debian GNU/Linux' --class debian --class os $menuentry_id_option 'gnulinux-simple-6f1c' {
    load_video
    if [ x$grub_platform = xxen ]; then insmod xzio; insmod lzopio; fi
    echo    'Loading Linux 6.12.9-amd64 ...'
    linux    /boot/vmlinuz-6.12.9-amd64 root=UUID=6f1c ro  quiet
    initrd    /boot/initrd.img-6.12.9-amd64
}
submenu 'Advanced options for Debian GNU/Linux' $menuentry_id_option 'gnulinux-advanced-6f1c' {
    menuentry 'Debian, with Linux 6.12.9-amd64' $menuentry_id_option 'gnulinux-6.12.9-amd64-advanced-6f1c' {
        linux    /boot/vmlinuz-6.12.9-amd64 root=UUID=6f1c ro  quiet
    }
    menuentry 'Debian, with Linux 6.12.9-amd64 (recovery)' --id 'recovery-6f1d' {
        linux    /boot/vmlinuz-6.12.9-amd64 root=UUID=6f1c ro single
    }
    menuentry 'Debian, with Linux 6.1.0-28-amd64 (recovery)' --id 'recovery-6f1c' {
        linux    /boot/vmlinuz-6.1.0-28-amd64 root=UUID=6f1c ro single
    }
    menuentry 'Debian, with Linux 6.1.0-28-amd64' $menuentry_id_option 'gnulinux-6.1.0-28-amd64-advanced-6f1c' {
        if [ "${initrdfail}" = 1 ]; then
          linux    /boot/vmlinuz-6.1.0-28-amd64 root=/dev/sda1 ro
        else
          linux    /boot/vmlinuz-6.1.0-28-amd64 root=UUID=6f1c ro  quiet
        fi
    }
}
menuentry 'UEFI Firmware Settings' $menuentry_id_option 'uefi-firmware' {
    fwsetup
}
"""
SUSE = """\
menuentry 'openSUSE Leap 15.6'  --class opensuse --class os $menuentry_id_option 'gnulinux-simple-0b' {
    linux    /boot/vmlinuz-6.4.0-150600.23.33-default root=UUID=0b  ${extra_cmdline} splash=silent
}
submenu 'Advanced options for openSUSE Leap 15.6' --hotkey=1 $menuentry_id_option 'gnulinux-advanced-0b' {
    menuentry 'Leap, with Linux 5.14.21-default' $menuentry_id_option 'gnulinux-5.14.21-default-advanced-0b' {
        linuxefi /boot/vmlinuz-5.14.21-default root=UUID=0b
    }
}
"""
BY_HAND = """\
menuentry "My kernel" {
    linux /vmlinuz-6.6.30-mine root=/dev/sda2 ro
}
menuentry "Don't tell" --id mine {
    linux16 (hd0,1)/boot/bzImage-5.10.1 root=/dev/sda2
}
menuentry 'Windows' { chainloader +1 }
"""
# What grub-mkconfig adds to a menu for the other systems of a machine, of which one has the same kernel.
OTHER_SYSTEMS = """\
menuentry 'Debian GNU/Linux 11 (on /dev/sdb2)' --class gnu-linux $menuentry_id_option 'osprober-gnulinux-simple-77' {
    linux /boot/vmlinuz-6.12.9-amd64 root=/dev/sdb2
}
submenu 'Advanced options for Debian GNU/Linux 11 (on /dev/sdb2)' $menuentry_id_option 'osprober-gnulinux-advanced-77' {
    menuentry 'Debian 11 (on /dev/sdb2)' --class gnu-linux $menuentry_id_option 'osprober-gnulinux-5.10.0-77' {
        linux /boot/vmlinuz-5.10.0-20-amd64 root=/dev/sdb2
    }
}
"""
UBUNTU_ON_ZFS = """\
menuentry 'Ubuntu 24.04 LTS' --class ubuntu ${menuentry_id_option} 'gnulinux-rpool/ROOT/ubuntu_6y-6.8.0-51-generic' {
    linux\t"/BOOT/ubuntu_6y@/vmlinuz-6.8.0-51-generic" root=ZFS="rpool/ROOT/ubuntu_6y" ro quiet splash $vt_handoff
}
submenu 'History for Ubuntu' ${menuentry_id_option} 'gnulinux-history' {
    menuentry 'Ubuntu, recovery' ${menuentry_id_option} 'gnulinux-recovery' {
        linux "/BOOT/ubuntu_6y@/vmlinuz-6.8.0-40-generic" ro recovery nomodeset dis_ucode_ldr
    }
}
"""
CENTOS_7 = """\
menuentry 'CentOS Linux (3.10.0-1160.el7.x86_64) 7 (Core)' --class centos $menuentry_id_option 'gnulinux-3.10.0-a' {
\tlinux16 /vmlinuz-3.10.0-1160.el7.x86_64 root=/dev/mapper/centos-root ro crashkernel=auto rhgb quiet LANG=en_US.UTF-8
}
menuentry 'CentOS Linux (0-rescue-9c) 7 (Core)' --unrestricted $menuentry_id_option 'gnulinux-0-rescue-9c' {
\tlinux16 /vmlinuz-0-rescue-9c root=/dev/mapper/centos-root ro
}
"""
SNIPPET = """\
title Fedora Linux (6.11.4-301.fc41.x86_64) 41
version 6.11.4-301.fc41.x86_64
linux /boot/vmlinuz-6.11.4-301.fc41.x86_64
options root=UUID=1e ro rhgb quiet
"""


def by_kernel(text):
    found = {}
    for entry in menu_entries(text):
        found.setdefault(entry.kernel, entry.name)
    return found


def test_entries_are_found_by_the_kernel_that_they_load_never_one_for_recovery():
    assert by_kernel(DEBIAN) == {
        "6.12.9-amd64": "gnulinux-simple-6f1c",
        "6.1.0-28-amd64": "gnulinux-advanced-6f1c>gnulinux-6.1.0-28-amd64-advanced-6f1c",
    }
    assert by_kernel(SUSE) == {
        "6.4.0-150600.23.33-default": "gnulinux-simple-0b",
        "5.14.21-default": "gnulinux-advanced-0b>gnulinux-5.14.21-default-advanced-0b",
    }
    assert by_kernel(BY_HAND) == {"6.6.30-mine": "My kernel", "5.10.1": "mine"}
    assert by_kernel(UBUNTU_ON_ZFS) == {"6.8.0-51-generic": "gnulinux-rpool/ROOT/ubuntu_6y-6.8.0-51-generic"}
    assert by_kernel(CENTOS_7)["3.10.0-1160.el7.x86_64"] == "gnulinux-3.10.0-a"


def test_an_entry_of_another_system_on_the_machine_is_never_chosen():
    assert by_kernel(OTHER_SYSTEMS + DEBIAN) == by_kernel(DEBIAN)


@pytest.mark.parametrize("text", ["", "}\n}\n}", "menuentry {", "menuentry 'a' {\n linux", "submenu 'a' {\n" * 50])
def test_a_menu_that_is_none_has_no_entries(text):
    assert list(menu_entries(text)) == []


@pytest.fixture
def host(tmp_path, monkeypatch):
    """A root with a menu and two kernels, and programs that write down what they were given."""
    root, programs = tmp_path / "root", tmp_path / "programs"
    (root / "boot/grub").mkdir(parents=True)
    programs.mkdir()
    (root / "boot/grub/grub.cfg").write_text(DEBIAN)
    (root / "boot/grub/grubenv").write_text("# GRUB Environment Block\n")
    for kernel in ("6.12.9-amd64", "6.1.0-28-amd64"):
        (root / f"boot/vmlinuz-{kernel}").touch()
    for name in ("grub-reboot", "grub-editenv", "kexec", "systemctl"):
        program(programs / name, f'echo "{name} $*" >> "{tmp_path}/done"')
    program(programs / "grub-probe", 'test "$1" != --target=fs || echo ext2')
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")
    monkeypatch.setattr(boot_entry, "_ANSWER_SECONDS", 0)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    return root


def program(path, text):
    path.write_text(f"#!/bin/sh\n{text}\n")
    path.chmod(path.stat().st_mode | stat.S_IXUSR)


def done(host):
    path = host.parent / "done"
    return path.read_text().splitlines() if path.exists() else []


def test_grub_starts_an_entry_once_and_then_its_default(host):
    restart_with("6.1.0-28-amd64", "grub", host)
    wait_for(lambda: len(done(host)) == 2)
    chosen = "grub-reboot gnulinux-advanced-6f1c>gnulinux-6.1.0-28-amd64-advanced-6f1c"
    assert done(host) == [chosen, "systemctl --no-wall reboot"]
    boot_entry.clear_next_entry()
    assert done(host)[2:] == ["grub-editenv - unset next_entry"]


def test_kexec_loads_the_kernel_with_its_initrd_and_this_command_line(host):
    (host / "boot/initrd.img-6.1.0-28-amd64").write_text("")
    restart_with("6.1.0-28-amd64", "kexec", host)
    wait_for(lambda: len(done(host)) == 2)
    loaded = f"--load {host}/boot/vmlinuz-6.1.0-28-amd64 --reuse-cmdline --initrd={host}/boot/initrd.img-6.1.0-28-amd64"
    assert done(host) == [f"kexec {loaded}", "systemctl --no-wall kexec"]


def test_kexec_loads_no_kernel_without_the_initrd_that_the_running_one_has(host):
    ours = f"initrd.img-{os.uname().release}"
    (host / f"boot/{ours}").touch()
    why = f"{host}/boot has no initrd for kernel 6.1.0-28-amd64, and the running kernel has {ours}; create one"
    assert missing_requirements(["6.1.0-28-amd64"], "kexec", host) == [why]


def by_snippets(host, grub_cfg="insmod blscfg\nif [ next_entry ]; then x; fi\nblscfg\n", **files):
    entries = host / "boot/loader/entries"
    entries.mkdir(parents=True)
    for name, text in files.items():
        (entries / f"{name}.conf").write_text(text)
    return [(entry.name, entry.kernel) for entry in entries_of(grub_cfg, host)]


def test_files_of_the_boot_loader_specification_are_entries_too(host):
    for kernel in ("6.11.4-301.fc41.x86_64", "6.9.1-1.fc40.x86_64", "6.11.0-301.fc41.x86_64"):
        (host / f"boot/vmlinuz-{kernel}").touch()
    debug = SNIPPET.replace("rhgb quiet", "systemd.log_level=debug")
    found = by_snippets(
        host,
        **{
            "0a1b-6.9.1-1.fc40.x86_64": SNIPPET.replace("6.11.4-301.fc41", "6.9.1-1.fc40").replace(" ", "\t"),
            "0a1b-6.11.4-301.fc41.x86_64": SNIPPET,
            "0a1b-6.11.4-301.fc41.x86_64~debug": debug,
            "0a1b-0-rescue": SNIPPET.replace("6.11.4", "6.11.0"),
            "0a1b-6.11.5-gone": SNIPPET.replace("6.11.4", "6.11.5"),
            "0a1b-single": SNIPPET.replace("6.11.4", "6.11.0") + "options single\n",
        },
    )
    kernel = "6.11.4-301.fc41.x86_64"
    newest_first = [(f"0a1b-{kernel}", kernel), (f"0a1b-{kernel}~debug", kernel)]
    assert found == [*newest_first, ("0a1b-6.9.1-1.fc40.x86_64", "6.9.1-1.fc40.x86_64")]


def test_files_that_grub_does_not_read_are_no_entries(host):
    (host / "boot/vmlinuz-6.11.4-301.fc41.x86_64").touch()
    assert by_snippets(host, "if [ next_entry ]; then x; fi\n", **{"0a1b-6.11.4": SNIPPET}) == []


def test_an_entry_whose_kernel_is_not_here_is_refused(host):
    (host / "boot/vmlinuz-6.1.0-28-amd64").unlink()
    [why] = missing_requirements(["6.1.0-28-amd64"], "grub", host)
    assert why == "GRUB's menu has no entry for kernel 6.1.0-28-amd64; it has 6.12.9-amd64"


@pytest.mark.parametrize(("target", "kinds"), [("abstraction", "diskfilter mdraid1x"), ("fs", "btrfs")])
def test_a_choice_that_grub_could_not_forget_is_refused(host, target, kinds):
    program(host.parent / "programs/grub-probe", f'test "$1" != --target={target} || echo {kinds}')
    [why] = missing_requirements(["6.1.0-28-amd64"], "grub", host)
    assert f"grubenv lies on {', '.join(sorted(kinds.split()))}, to which GRUB can't write" in why
    assert 'boot = "kexec"' in why
    (host / "boot/grub/grubenv").write_text("# GRUB Environment Block\nenv_block=512+1\n")  # openSUSE, on btrfs
    assert missing_requirements(["6.1.0-28-amd64"], "grub", host) == []


def test_a_menu_that_reads_no_choice_is_refused(host):
    (host / "boot/grub/grub.cfg").write_text(BY_HAND)
    (host / "boot/vmlinuz-6.6.30-mine").touch()
    [why] = missing_requirements(["6.6.30-mine"], "grub", host)
    assert "does not read next_entry, so grub-reboot has no effect" in why


def test_a_host_with_uefi_may_have_its_menu_on_the_partition_of_its_firmware(host):
    place = host / "boot/efi/EFI/redhat"
    place.mkdir(parents=True)
    (host / "boot/grub/grub.cfg").rename(place / "grub.cfg")
    assert missing_requirements(["6.1.0-28-amd64"], "grub", host) == []


def test_what_a_host_can_not_start_is_said_before_anything_is_done(host):
    known = "6.12.9-amd64, 6.1.0-28-amd64"
    asked = ["6.1.0-28-amd64", "7.0"]
    assert missing_requirements(asked, "grub", host) == [f"GRUB's menu has no entry for kernel 7.0; it has {known}"]
    assert missing_requirements(["7.0"], "kexec", host) == [
        f"{host}/boot has no file of kernel 7.0; install that kernel"
    ]
    (host / "boot/grub/grub.cfg").unlink()
    [why] = missing_requirements(asked, "grub", host)
    assert why == (
        'there is no /boot/grub/grub.cfg or /boot/grub2/grub.cfg, so GRUB does not start this host; give boot = "kexec"'
    )
    assert done(host) == []


def test_a_refusal_of_the_chooser_is_what_is_said(host):
    (host.parent / "programs/grub-reboot").write_text("#!/bin/sh\necho 'cannot write grubenv' >&2\nexit 1\n")
    with pytest.raises(HostError, match="cannot write grubenv"):
        restart_with("6.1.0-28-amd64", "grub", host)
    assert done(host) == []


def test_what_runs_is_what_uname_says():
    said = subprocess.run(["uname", "-r"], stdout=subprocess.PIPE, text=True, check=True).stdout.strip()
    assert boot_entry.running_kernel()["kernel"] == said
