"""How often the data are looked at before the last block. Imports nothing heavy, so that ``dbdyno plan`` may ask."""

LOOKS = (6, 7, 8, *range(10, 41, 2))  # blocks; a longer plan goes on in steps of 20
STEP_BEYOND = 20
FIRST_DECIDING = 6  # blocks: the mean can show a large effect from there on
FIRST_BY_RANKS = 8  # blocks: with fewer the signed rank reaches next to nothing of its share at a look
FIRST_EQUIVALENT = 10  # blocks: fewer see too little of rare stalls to say that two treatments are alike


def planned_looks(blocks: int) -> tuple[int, ...]:
    """Return the numbers of blocks at which a design of at most ``blocks`` is looked at; the last is ``blocks``."""
    beyond = range(LOOKS[-1] + STEP_BEYOND, blocks, STEP_BEYOND)
    return (*(look for look in (*LOOKS, *beyond) if look < blocks), blocks)
