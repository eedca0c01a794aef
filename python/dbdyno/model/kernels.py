"""Kernels by the names that a study gives them: those that a virtual machine boots, and those that are simulated."""

BOOTED_KERNELS = ("debian-5.10", "debian-6.1", "debian-6.12", "debian-7.2")  # that dbdyno gets; others go by their path
BOOTED = "booted"  # the kind of stack that they are the kernel of
BUSES = ("virtio", "scsi", "ahci", "nvme")  # by which a virtual machine has its disk


def is_booted(kernel: object) -> bool:
    """Whether a kernel of a study is one that a virtual machine boots; else it is simulated."""
    return isinstance(kernel, str) and kernel.startswith(("debian-", "/"))
