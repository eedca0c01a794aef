"""Numbers of the loop driver's interface (linux/loop.h)."""

LOOP_GET_STATUS64 = 0x4C05
LOOP_INFO64_BYTES, LOOP_NAME_AT, LOOP_NAME_BYTES = 232, 56, 64  # struct loop_info64
LOOP_CTL_ADD, LOOP_CTL_REMOVE, LOOP_CTL_GET_FREE = 0x4C80, 0x4C81, 0x4C82
