"""The Python of a guest: the modules that its program imports, compiled, so that a guest need not look for each.

A guest reads files of its host by 9p, and each look into a folder is a message: an import that takes 18 s so takes a
fraction of it from memory. So the modules are put into the archive that the guest boots with; whatever else it imports
it finds on its host.
"""

import importlib._bootstrap_external as importing
import json
import subprocess
import sys
from functools import cache
from pathlib import Path

from dbdyno.errors import HostError

_LIST = """\
import importlib, json, sys
importlib.import_module(sys.argv[1])
found = {}
for name, module in list(sys.modules.items()):
    file = getattr(module, "__file__", None)
    if file and file.endswith((".py", ".so")) and name != "__main__":
        found[name] = [file, hasattr(module, "__path__")]
print(json.dumps(found))
"""
_SECONDS_MAX = 120


@cache
def python_bundle(program: str) -> dict[str, bytes]:
    """The modules that a module imports, itself among them: path below a folder of modules -> content.

    Raises ``HostError`` where it can't be imported.
    """
    argv = [sys.executable, "-c", _LIST, program]
    done = subprocess.run(argv, check=False, capture_output=True, timeout=_SECONDS_MAX)
    if done.returncode:
        raise HostError(f"{program} can't be imported: {done.stderr.decode(errors='replace').strip()[-400:]}")
    listed: dict[str, tuple[str, bool]] = json.loads(done.stdout)
    return dict(_module(name, Path(file), is_package=is_package) for name, (file, is_package) in listed.items())


def _module(name: str, file: Path, *, is_package: bool) -> tuple[str, bytes]:
    base = name.replace(".", "/")
    if file.suffix == ".so":
        return f"{base}{file.name[file.name.index('.') :]}", file.read_bytes()
    code = compile(file.read_bytes(), str(file), "exec", dont_inherit=True, optimize=0)
    content: bytes = bytes(importing._code_to_timestamp_pyc(code))  # type: ignore[attr-defined]  # noqa: SLF001
    return f"{base}/__init__.pyc" if is_package else f"{base}.pyc", content
