"""Every kind of stack, by the name that a treatment's ``stack.kind`` has."""

from collections.abc import Mapping
from typing import Any

from dbdyno.stack.kinds.emulated import EmulatedStack
from dbdyno.stack.kinds.external import ExternalStack
from dbdyno.stack.kinds.here import HereStack
from dbdyno.stack.kinds.kind import StackKind
from dbdyno.stack.kinds.memory import MemoryStack
from dbdyno.stack.kinds.real import RealStack

Kinds = Mapping[str, StackKind[Any]]

# In the order in which a plan says what they touch.
KINDS: Kinds = {
    "real": RealStack(),
    "emulated": EmulatedStack(),
    "memory": MemoryStack(),
    "here": HereStack(),
    "external": ExternalStack(),
}
