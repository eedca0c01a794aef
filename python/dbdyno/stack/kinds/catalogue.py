"""Every kind of stack, by the name that a treatment's ``stack.kind`` has: a file of this folder each."""

from collections.abc import Mapping
from importlib import import_module
from typing import Any

from dbdyno.model.design import IMAGE
from dbdyno.stack.kinds.kind import StackKind
from dbdyno.study.stack_rules import DEVICES, EXTERNAL, SIMULATED

Kinds = Mapping[str, StackKind[Any]]

# In the order in which a plan says what they touch.
KINDS: Kinds = {
    name: import_module(f"dbdyno.stack.kinds.{name}").KIND
    for name in (*filter(None, DEVICES), IMAGE, EXTERNAL, SIMULATED)
}
