"""Virtual machines: kernels to boot, QEMU, and what is said between a guest and its host."""
