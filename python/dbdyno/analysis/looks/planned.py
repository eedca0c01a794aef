"""How often the data are looked at before the last block. Imports nothing heavy, so that ``dbdyno plan`` may ask."""

LOOKS = (6, 10, 15, 20, 30, 40)  # blocks; a longer plan goes on in steps of 20
STEP_BEYOND = 20
FIRST_DECIDING = 8  # blocks: with fewer the exact tests reach next to nothing, so the look at 6 only gives the spread


def planned_looks(blocks: int) -> tuple[int, ...]:
    """Return the numbers of blocks at which a design of at most ``blocks`` is looked at; the last is ``blocks``."""
    beyond = range(LOOKS[-1] + STEP_BEYOND, blocks, STEP_BEYOND)
    return (*(look for look in (*LOOKS, *beyond) if look < blocks), blocks)


def deciding_looks(blocks: int) -> tuple[int, ...]:
    """Return those looks of a design of at most ``blocks`` that can decide anything."""
    return tuple(look for look in planned_looks(blocks) if look >= FIRST_DECIDING or look == blocks)
