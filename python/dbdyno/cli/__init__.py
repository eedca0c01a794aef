"""The command line: one file per verb; only this package prints or exits."""

import gc
import os

# Before numpy is imported: the matrices here are small, and threads would cost more than they gain.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
gc.set_threshold(50_000, 20)  # the records of a large run are many, and none of them garbage
