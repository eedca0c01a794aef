"""Whatever a study file is or holds, reading it ends soon, with one message that says where and what is allowed."""

import os
import subprocess
import sys
import time

import pytest

from dbdyno.model.design import TREATMENTS_MAX
from dbdyno.model.quantity import duration_seconds, fraction, size_bytes
from dbdyno.store.documents import toml_document
from dbdyno.study.document import MAX_DEPTH, MAX_ENTRIES
from dbdyno.study.load import load_study
from tests.unit.conftest import changed
from tests.unit.study.conftest import refusal

DEVICE = 'device = ["hdd-7200", "ssd-sata"]'


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("99999999TiB", "is too large; sizes are below 8 EiB"),
        ("8388608TiB", "is too large; sizes are below 8 EiB"),
        ("9" * 400 + "B", "is too large; sizes are below 8 EiB"),
    ],
)
def test_a_size_that_no_file_can_have(text, said, write_study):
    with pytest.raises(ValueError, match=said):
        size_bytes(text)
    path = write_study(('size = "1GiB"', f'size = "{text}"'))
    assert refusal(path) == f'{path}:7: stack.size: is "{text if len(text) < 59 else text[:56] + "..."}' + (
        f'", which {said}' if len(text) < 59 else f", which {said}"
    )


@pytest.mark.parametrize("text", ["1000001h", "1" + "0" * 400 + "s"])
def test_a_time_beyond_all_patience(text):
    with pytest.raises(ValueError, match="is too long; times are at most 1000000h"):
        duration_seconds(text)


def test_a_percentage_of_endless_digits():
    with pytest.raises(ValueError, match="has too many digits"):
        fraction("1" * 400 + "%")


@pytest.mark.parametrize("digits", [25, 4000, 5000])
def test_a_setting_of_many_digits(digits, write_study):
    path = write_study(('innodb_buffer_pool_size = "256M"', f"x = 1{'0' * (digits - 1)}"))
    said = refusal(path)
    assert said.startswith(f"{path}:14: ") or "line 14" in said
    assert len(said) < 300


@pytest.mark.parametrize("kind", ["device", "fifo", "folder", "large", "missing", "not UTF-8", "empty"])
def test_what_is_no_study_file_is_refused_at_once(tmp_path, kind):
    path = tmp_path / "study.toml"
    reason = {
        "device": "it is not a regular file",
        "fifo": "it is not a regular file",
        "folder": "Is a directory",
        "large": "it is larger than 1 MiB",
        "missing": "No such file or directory",
        "not UTF-8": "it is not UTF-8 text; save it as UTF-8",
    }.get(kind)
    {
        "device": lambda: path.symlink_to("/dev/zero"),
        "fifo": lambda: os.mkfifo(path),
        "folder": path.mkdir,
        "large": lambda: path.touch() or os.truncate(path, 3 * 1024**3),
        "missing": lambda: None,
        "not UTF-8": lambda: path.write_bytes(b'title = "\xff"'),
        "empty": path.touch,
    }[kind]()
    said = refusal(path)
    if kind == "empty":
        assert ": is empty; a study needs [study]" in said
    else:
        assert said == f"{path}: can't be read: {reason}"


@pytest.mark.parametrize("file", ["/dev/zero", "fifo", "large"])
@pytest.mark.parametrize("field", ["file", "device"])
def test_so_is_every_file_that_a_study_names(tmp_path, write_study, file, field):
    os.mkfifo(tmp_path / "fifo.toml")
    (tmp_path / "zero.toml").symlink_to("/dev/zero")
    (tmp_path / "large.toml").touch()
    os.truncate(tmp_path / "large.toml", 3 * 1024**3)
    name = {"/dev/zero": "zero.toml"}.get(file, f"{file}.toml")
    changes = {
        "file": [('kind = "slap"\nclients = 10\nqueries = 1000', f'kind = "script"\nfile = "{name}"\nduration = "1s"')],
        "device": [(DEVICE, f'device = "{name}"'), ('baseline = { device = "hdd-7200" }\n', "")],
    }[field]
    said = refusal(write_study(*changes))
    assert f'{field}: is "{name}": ' in said
    assert any(
        reason in said for reason in ("not a regular file", "larger than", "no drive model", "not a drive model")
    )


def test_a_byte_order_mark_is_no_mistake(tmp_path):
    path = tmp_path / "study.toml"
    path.write_text(changed().replace("\n", "\r\n"), encoding="utf-8-sig")
    assert load_study(path).about.title == "A study"


NESTED = {
    "lists": lambda depth: f"x = {'[' * depth}{']' * depth}\n",
    "tables": lambda depth: f"x = {'{a = ' * depth}1{'}' * depth}\n",
    "dotted": lambda depth: f"x{'.a' * depth} = 1\n",
    "headings": lambda depth: f"[x{'.a' * depth}]\n",
}


@pytest.mark.parametrize("depth", [MAX_DEPTH + 1, 100, 400, 10_000])
@pytest.mark.parametrize("kind", NESTED)
def test_nesting_of_any_depth_is_one_message(tmp_path, kind, depth):
    path = tmp_path / "study.toml"
    path.write_text(NESTED[kind](depth))
    assert "nested too deep" in refusal(path)


@pytest.mark.parametrize(
    "text", ["a" + ".a" * 400_000 + " = 1\n", '[a."b"' + ".'c'" * 200_000 + "]\n", "x = {" + "a." * 400_000]
)
def test_a_key_of_many_parts_is_refused_before_it_takes_the_square_of_its_length(tmp_path, text):
    path = tmp_path / "study.toml"
    path.write_text(f"version = 1\n{text}")
    assert "nested too deep: a key of more than 32 parts (at line 2)" in refusal(path)


def test_too_many_levels_are_refused_before_any_is_looked_at(write_study):
    levels = ", ".join(f'"hdd{number}"' for number in range(500))
    path = write_study((DEVICE, f"device = [{levels}]"))
    said = f"{path}:6: stack.device: has 500 levels, which makes 500 treatments; a study may have {TREATMENTS_MAX}"
    assert refusal(path) == said


def test_so_are_too_many_treatments_of_few_levels(write_study):
    settings = "".join(f"x{number} = [1, 2]\n" for number in range(40))
    path = write_study(('innodb_buffer_pool_size = "256M"\n', settings))
    said = refusal(path)
    assert said.startswith(f"{path}:6: stack.device: has 2 levels, which with the other factors makes {2**41} ")


@pytest.mark.parametrize(
    ("text", "line", "field"),
    [
        ("[stack]\ndevice = [" + ", ".join(map(str, range(10_000))) + "]\n", 2, "stack.device"),
        ("\n[server.settings]\n" + "".join(f"x{number} = 1\n" for number in range(10_000)), 2, "server.settings"),
        ("".join(f"[scale.s{number}.design]\nblocks = 1\n" for number in range(10_000)), 1, "scale"),
        ("[[reported]]\nsource = 1\n" * 10_000, 1, "reported"),
    ],
)
def test_ten_thousand_of_anything_are_refused_with_their_line(tmp_path, text, line, field):
    path = tmp_path / "study.toml"
    path.write_text(text)
    assert refusal(path) == f"{path}:{line}: {field}: has 10000 entries; at most {MAX_ENTRIES} are read"


def test_the_largest_study_is_read_no_slower_by_the_treatment_than_a_small_one(write_study):
    def seconds(count):
        levels = ", ".join(map(str, range(count)))
        path = write_study((DEVICE, 'device = "ideal"'), ('baseline = { device = "hdd-7200" }\n', ""),
                           ("innodb_buffer_pool_size", f"x = [{levels}]\ninnodb_buffer_pool_size"))  # fmt: skip
        spent = []
        for _ in range(3):  # the least of them is what others on this host add least to
            began = time.thread_time()
            load_study(path)
            spent.append(time.thread_time() - began)
        return min(spent) / count

    assert seconds(TREATMENTS_MAX) < 4 * seconds(TREATMENTS_MAX // 8)


@pytest.mark.parametrize(
    ("given", "meant"), [("script", "file"), ("sql", "file"), ("threads", "clients"), ("runtime", "duration")]
)
def test_names_from_elsewhere_are_understood(write_study, given, meant):
    script = ('kind = "slap"\nclients = 10\nqueries = 1000', f'kind = "script"\n{given} = "x"')
    assert f'Did you mean "{meant}"?' in refusal(write_study(script))


@pytest.mark.long
@pytest.mark.parametrize("encoding", ["latin-1", "ascii", "utf-8"])
def test_whatever_the_terminal_can_show_nothing_is_a_traceback(write_study, tmp_path, encoding):
    path = write_study(('title = "A study"', 'title = "ê \\u2013 \\u2026 漢"'), ("clients = 10", 'clients = "→"'))
    environment = {**os.environ, "PYTHONIOENCODING": encoding, "DBDYNO_STATE_DIR": str(tmp_path / "state")}
    for argv, code in ((["plan", path], 2), (["plan", tmp_path / "ê\udcff→"], 2), (["--help"], 0)):
        command = [sys.executable, "-m", "dbdyno.cli.main", *map(os.fsencode, argv)]
        done = subprocess.run(command, capture_output=True, env=environment, check=False)
        assert b"Traceback" not in done.stderr
        assert done.returncode == code


def test_dots_in_texts_and_comments_part_no_key():
    many = ",".join(["1.5"] * 240_000)
    text = f"# {'1.' * 40}\na = '{many}'\nb = \"{'x.' * 40}\"\n[c.'d.e']\n"
    found = toml_document(text)
    assert (len(found["a"]), found["c"]) == (len(many), {"d.e": {}})
