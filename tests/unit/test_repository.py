"""Promises about the source as a whole."""

import ast
import json
import re
import shutil
import subprocess
import tomllib
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
SOURCES = sorted((ROOT / "python/dbdyno").rglob("*.py"))
EXITS = {"exit", "quit", "print", "input", "SystemExit"}
ENDINGS = {
    "sys.exit",
    "os._exit",
    "os.abort",
    "sys.stdout.write",
    "sys.stderr.write",
    "os.execv",
    "os.execvp",
    "typer.echo",
}


def dotted(node):
    if isinstance(node, ast.Attribute):
        return f"{dotted(node.value)}.{node.attr}"
    return node.id if isinstance(node, ast.Name) else ""


def prints_or_exits(source):
    for node in ast.walk(ast.parse(source)):
        if isinstance(node, ast.Call) and (dotted(node.func) in EXITS | ENDINGS):
            yield f"{node.lineno}: {dotted(node.func)}"
        elif isinstance(node, ast.Raise) and node.exc and dotted(getattr(node.exc, "func", node.exc)) == "SystemExit":
            yield f"{node.lineno}: raise SystemExit"


def test_only_the_command_line_prints_or_exits():
    of_a_child = ROOT / "python/dbdyno/system/child.py"  # what ends there is the process that it forked itself
    outside = [path for path in SOURCES if path.parent.name != "cli" and path != of_a_child]
    found = [f"{path.relative_to(ROOT)}:{hit}" for path in outside for hit in prints_or_exits(path.read_text())]
    assert found == []
    assert len(outside) > 60
    inside = [path for path in SOURCES if path.parent.name == "cli"]
    assert any(list(prints_or_exits(path.read_text())) for path in inside)  # the search does find what it is for


def test_no_two_files_of_tests_have_the_same_name():
    names = [path.name for path in (ROOT / "tests").rglob("test_*.py")]
    assert sorted(names) == sorted(set(names)), "pytest takes them for one, and leaves the second out"


def test_only_a_product_s_adapter_knows_its_client_library():
    found = {path for path in SOURCES if re.search(r"^\s*(import|from) pymysql", path.read_text(), re.MULTILINE)}
    adapter = ROOT / "python/dbdyno/servers/mysql"
    assert found
    assert {path.parent for path in found} == {adapter}


WRITTEN = sorted(
    path for folder in ("python", "crates", "tests", "scripts", "benches") for path in (ROOT / folder).rglob("*.*")
)
PYTHON = [path for path in WRITTEN if path.suffix == ".py"]
RUST = [path for path in WRITTEN if path.suffix == ".rs"]


def git(*argv):
    # ``make test`` may run the tests as root over another user's checkout.
    done = subprocess.run(
        ["git", "-c", "safe.directory=*", "-C", str(ROOT), *argv], capture_output=True, text=True, check=False
    )
    if done.returncode != 0:
        pytest.skip(f"this is no git checkout: {done.stderr.strip()}")
    return done.stdout


KNOWN_REGISTRIES = ("https://github.com/rust-lang/crates.io-index",)
REGISTRY = re.compile(
    r"registry\+(\S+?)\"|"
    r"(?:--(?:extra-)?index-url|--find-links|index-url|registry|replace-with)\s*[= ]\s*([^\s\"']*[/:][^\s\"']*)|"
    r"(https?://[^\s\"'<>)]*(?:/simple\b|/pypi/|artifactory|nexus|:\d{4,5}/)[^\s\"'<>)]*)"
)


# Where the names of MySQL's settings, counters, engines and programs stand: the rooms of the product, and what starts
# its programs or other programs that load it.
_OF_MYSQL = ("mysql/", "servers/mysql/", "servers/sources/", "servers/products.py", "stack/tools.py",
             "stack/capabilities.py", "workload/beside.py", "workload/dump.py", "workload/mysqlslap.py",
             "workload/sysbench.py")  # fmt: skip
_NAME_OF_MYSQL = re.compile(
    r"\b(innodb|myisam|aria|rocksdb|mysqlx?d?|mariadbd?|percona|log_bin|sync_binlog)\b|(innodb|rocksdb|aria)_\w+|MYSQL_"
)


def names_of_mysql(source):
    """Texts of code that name a thing of MySQL's; sentences may, and so may what documents the code."""
    tree = ast.parse(source)
    documents = {id(node.value) for node in ast.walk(tree) if isinstance(node, ast.Expr)}
    for node in ast.walk(tree):
        text = node.value if isinstance(node, ast.Constant) and isinstance(node.value, str) else " "
        if " " not in text and id(node) not in documents and _NAME_OF_MYSQL.search(text):
            yield f"{node.lineno}: {text}"


def test_mysql_is_known_in_its_own_rooms():
    root = ROOT / "python/dbdyno"
    outside = [path for path in SOURCES if not str(path.relative_to(root)).startswith(_OF_MYSQL)]
    found = [f"{path.relative_to(root)}:{hit}" for path in outside for hit in names_of_mysql(path.read_text())]
    assert found == []
    assert list(names_of_mysql((root / "mysql/settings.py").read_text()))  # the search does find what it is for


def test_no_tracked_file_names_a_registry():
    """Whoever builds it decides where packages come from; an address of ours would be a secret or a dead end."""
    found = []
    for name in git("ls-files", "-z").split("\0"):
        path = ROOT / name
        if not name or not path.is_file() or path == Path(__file__):
            continue
        hits = REGISTRY.finditer(path.read_text(encoding="utf-8", errors="ignore"))
        found += [f"{name}: {hit[0]}" for hit in hits if next(filter(None, hit.groups())) not in KNOWN_REGISTRIES]
    assert found == []


def test_locks_are_tracked():
    tracked = set(git("ls-files").splitlines())
    assert {"Cargo.lock", "requirements.txt", "requirements-dev.txt", "requirements-site.txt"} <= tracked
    made = {name for name in tracked if name.endswith((".so", ".pyc", ".hlog", ".parquet"))}
    assert not {name for name in made if not name.startswith("tests/kept/")}


def dependencies():
    """Crate of this workspace -> names of the packages that it depends on."""
    cargo = shutil.which("cargo")
    if cargo:
        done = subprocess.run(
            [cargo, "metadata", "--format-version", "1", "--locked", "--offline"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=False,
        )
        if done.returncode == 0:
            metadata = json.loads(done.stdout)
            names = {package["id"]: package["name"] for package in metadata["packages"]}
            members = set(metadata["workspace_members"])
            nodes = metadata["resolve"]["nodes"]
            return {
                names[node["id"]]: {names[one["pkg"]] for one in node["deps"]}
                for node in nodes
                if node["id"] in members
            }
    found = {}
    for manifest in ROOT.glob("crates/*/Cargo.toml"):
        held = tomllib.loads(manifest.read_text())
        tables = [held.get(f"{kind}dependencies", {}) for kind in ("", "dev-", "build-")]
        found[held["package"]["name"]] = {name for table in tables for name in table}
    return found


def test_only_one_crate_knows_python():
    found = dependencies()
    crates = {"dbdyno-blk", "dbdyno-common", "dbdyno-device", "dbdyno-disk", "dbdyno-load", "dbdyno-probe", "dbdyno-py"}
    assert crates <= set(found)
    assert [name for name, needs in found.items() if any(need.startswith("pyo3") for need in needs)] == ["dbdyno-py"]
    assert not any("dbdyno-py" in needs for needs in found.values())


def test_what_tools_say_is_not_read_in_the_locale_s_encoding():
    for path in (ROOT / "python/dbdyno").rglob("*.py"):
        assert "text=True" not in path.read_text(encoding="utf-8"), f"{path}: say encoding= and errors= instead"
