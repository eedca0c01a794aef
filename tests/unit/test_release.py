"""What a release promises: versions agree, each released one has a run that is read ever after, files are whole."""

import re
import tomllib
from pathlib import Path

import pytest
import yaml

from scripts.release import MACHINES, ROOT, Machine, ReleaseError, make_release, released, versions

KEPT = ROOT / "tests/kept"


def without_kept_run(dated, kept):
    """Released versions of which no run is kept with what its report said."""
    made_by = {}
    for run in kept.glob("*/run.toml"):
        version = tomllib.loads(run.read_text())["versions"]["dbdyno"]
        made_by[version] = (kept / f"{run.parent.name}.json").exists()
    return [version for version in dated if not made_by.get(version)]


def test_the_version_is_one_and_the_changelog_begins_with_it():
    assert len(set(versions().values())) == 1
    newest = re.search(r"^## \[([^\]]+)\]", (ROOT / "CHANGELOG.md").read_text(), re.MULTILINE)
    assert newest[1] in {*versions().values(), "unreleased"}
    assert yaml.safe_load((ROOT / "CITATION.cff").read_text())["version"] == versions()["pyproject.toml"]


def test_a_run_of_each_released_version_is_kept():
    assert without_kept_run(released(), KEPT) == []
    assert without_kept_run(["0.1.0", "9.9.9"], KEPT) == ["9.9.9"]


def test_a_release_is_refused_with_the_remedy(tmp_path, monkeypatch):
    (tmp_path / "there").write_text("")
    with pytest.raises(ReleaseError, match="is not empty; name another folder"):
        make_release(tmp_path, [machine for machine in MACHINES if not machine.missing_tools()], print)
    assert [path.name for path in tmp_path.iterdir()] == ["there"]
    strange = Machine("riscv99", "riscv99", "riscv99-linux-gnu-")
    with pytest.raises(ReleaseError, match=r"rustup target add riscv99-unknown.*apt-get install gcc-riscv99-linux-gnu"):
        make_release(tmp_path / "new", [strange], print)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(ReleaseError, match="cargo install cargo-cyclonedx; pip install cyclonedx-bom"):
        make_release(tmp_path / "new", [], print)
    assert not (tmp_path / "new").exists()


@pytest.mark.parametrize("form", sorted((ROOT / ".github/ISSUE_TEMPLATE").glob("*.yml")), ids=lambda form: form.stem)
def test_a_form_asks_for_what_exists(form):
    parts = yaml.safe_load(form.read_text())["body"]
    assert any(part.get("validations", {}).get("required") for part in parts)
    for name in re.findall(r"[A-Z]+\.md", form.read_text()):
        assert Path(ROOT / name).exists()
