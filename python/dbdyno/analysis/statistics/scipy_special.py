"""scipy's special functions, without loading for them what nothing here needs."""

import numpy as np

# scipy begins by asking numpy for all its names, and for that of f2py numpy loads a compiler's front end, in .15 s.
_LAZY = "f2py" not in vars(np)
if _LAZY:
    vars(np)["f2py"] = None
try:
    from scipy import special
finally:
    if _LAZY:
        del vars(np)["f2py"]

__all__ = ["special"]
