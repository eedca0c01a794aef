"""Between two blocks of a host under test: hand over the one that is over, wait until the next may begin."""

import json
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

from dbdyno.model.design import StopReason
from dbdyno.plan.order import drawn
from dbdyno.run.fleet.packed import pack_block
from dbdyno.run.stop import Outlook, Pace
from dbdyno.store.run_folder import RunFolder

GO = "go"  # the file that says up to which block may be run
NO_MORE = -1  # in it: end
_LOOK_AGAIN_SECONDS = 0.02
_WHOLE = 2.0**256  # of what is drawn


@dataclass
class Gate:
    """Decides nothing by itself. Blocks are counted by this host's own count."""

    folder: Path  # of this host's part of the run
    run: RunFolder
    send: Callable[[dict[str, Any]], None]
    first: int
    seed: int
    stagger_seconds: float
    sleep: Callable[[float], None] = time.sleep
    pace: Pace = field(default_factory=Pace)
    outlook: Outlook = field(default_factory=lambda: Outlook(None))

    def before(self, block: int, *, begun: bool) -> StopReason:
        """Hand over the block before; wait until this one may begin, then for as long as the seed says."""
        if block > self.first:
            self._hand_over(block - 1)
        self.send({"asks": block})
        if not self._may_begin(block):
            return "blocks"
        if not begun and self.stagger_seconds:
            share = int.from_bytes(drawn(self.seed, "stagger", block)) / _WHOLE
            self.sleep(share * self.stagger_seconds)
        return ""

    def look(self, blocks: int) -> StopReason:
        """Hand over the last block that there can be."""
        self._hand_over(blocks)
        return "blocks"

    def _hand_over(self, block: int) -> None:
        packed = pack_block(self.run, block, self.folder)
        seconds = self.pace.lengths[-1] if self.pace.lengths else self.pace.first_here
        self.send({"block": block, "packed": asdict(packed), "seconds": seconds or 0.0})

    def _may_begin(self, block: int) -> bool:
        """Wait until the file, which is replaced whole, says something about this block."""
        while True:
            last = may_run_up_to(self.folder)
            if last == NO_MORE or last >= block:
                return last != NO_MORE
            time.sleep(_LOOK_AGAIN_SECONDS)


def may_run_up_to(folder: Path) -> int:
    """Up to which block may be run; 0 where nothing was said yet."""
    try:
        return int(json.loads((folder / GO).read_text(encoding="ascii")))
    except FileNotFoundError:
        return 0
