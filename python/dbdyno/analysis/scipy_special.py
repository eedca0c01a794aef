"""``scipy.special``, imported without numpy.f2py, which nothing here needs."""

import numpy as np

# scipy asks for all names of numpy when it is imported; at the name f2py numpy imports a Fortran front end, in .15 s.
_LAZY = "f2py" not in vars(np)
if _LAZY:
    vars(np)["f2py"] = None
try:
    from scipy import special
finally:
    if _LAZY:
        del vars(np)["f2py"]

__all__ = ["special"]
