"""Every mistake is found before anything is touched, and names file, line, field, what was given, what is allowed."""

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from dbdyno.errors import UserError
from dbdyno.study.load import load_study
from dbdyno.study.schema import StackSection
from dbdyno.study.workloads import KINDS as WORKLOADS
from tests.unit.study.conftest import fields, refusal

DEVICES = '["hdd-7200", "ssd-sata"]'
POOL = 'innodb_buffer_pool_size = "256M"'
BASELINE = 'baseline = { device = "hdd-7200" }'
SECTIONS = (
    "version, study, suite, hosts, stack, queue, array, cache, encryption, volume, filesystem, server, host, workload, "
    "probes, crash, levels, design, fail_if, scale, reported, cost"
)
STACK = fields(StackSection)
KINDS = ", ".join(WORKLOADS)

# What is changed in the study; the messages, each after the study's path.
MISTAKES = {
    "unknown key": (
        [('scheduler = "mq-deadline"', 'schedular = "none"')],
        [f':8: stack.schedular: is unknown here; known are {STACK}. Did you mean "scheduler"?'],
    ),
    "unknown key, like no other": (
        [('scheduler = "mq-deadline"', "zzz = 1")],
        [f":8: stack.zzz: is unknown here; known are {STACK}"],
    ),
    "unknown key that looks like a type": (
        [('scheduler = "mq-deadline"', '"int[" = 1')],
        [f":8: stack.int[: is unknown here; known are {STACK}"],
    ),
    "unknown section": (
        [("[queue]", "[queu]")],
        [f':11: queu: is unknown; known are {SECTIONS}. Did you mean "queue"?'],
    ),
    "a section that is needed, misspelt": (
        [("[workload]", "[workloads]")],
        [f':15: workloads: is unknown; known are {SECTIONS}. Did you mean "workload"?'],
    ),
    "a section that other mistakes follow from, misspelt": (
        [("[stack]", "[stak]"), ("clients = 10", 'clients = "x"')],
        [
            f':5: stak: is unknown; known are {SECTIONS}. Did you mean "stack"?',
            ':17: workload.clients: is "x" but must be a whole number',
        ],
    ),
    "the version, misspelt": (
        [("version = 1", "verson = 1")],
        [f':1: verson: is unknown; known are {SECTIONS}. Did you mean "version"?'],
    ),
    "a number for text": ([('title = "A study"', "title = 5")], [":3: study.title: is 5 but must be text in quotes"]),
    "missing field": ([('kind = "slap"\n', "")], [f":15: workload.kind: is missing; allowed are {KINDS}"]),
    "another version": ([("version = 1", "version = 2")], [":1: version: is 2; this dbdyno reads version = 1"]),
    "no version": ([("version = 1\n", "")], [": version: is missing; this dbdyno reads version = 1"]),
    "true for a version": (
        [("version = 1", "version = true")],
        [":1: version: is true; this dbdyno reads version = 1"],
    ),
    "a title of two lines": (
        [('"A study"', '"A\\nstudy"')],
        [':3: study.title: is "A?study", which must be one line of text'],
    ),
    "several at once, by line": (
        [("blocks = 6", "blocks = 0"), ("clients = 10", 'clients = "x"'), ('size = "1GiB"', "foo = 1")],
        [
            f":7: stack.foo: is unknown here; known are {STACK}",
            ':17: workload.clients: is "x" but must be a whole number',
            ":21: design.blocks: is 0; it must be at least 1",
        ],
    ),
}


@pytest.mark.parametrize(("changes", "messages"), MISTAKES.values(), ids=MISTAKES.keys())
def test_a_mistake_is_named(write_study, changes, messages):
    path = write_study(*changes)
    assert refusal(path) == "\n".join(f"{path}{message}" for message in messages)


def test_a_drive_file_that_is_not_there_is_looked_for_beside_the_study(write_study, tmp_path):
    path = write_study(('"ssd-sata"', '"mine.toml"'))
    assert refusal(path) == (
        f'{path}:6: stack.device: is "mine.toml": cannot read the drive file {tmp_path / "mine.toml"}: '
        "No such file or directory"
    )


@pytest.mark.parametrize(
    ("device", "said"),
    [
        ("ebs-io1(iops=90000)", "is not possible: iops = 90000 is more than iops_max = 64000"),
        ("ebs-gp3(iosp=90000)", "unknown field `iosp`"),
        ("raid1(hdd-15k)", "is not of the form raid1(MEMBER, COUNT)"),
        ("raid4(hdd-15k, 3)", "is not an array: the arrays are raid0, raid1, raid5, raid6 and raid10"),
        ("raid5(hdd-15k, 2)", "is not possible: members are 2; level 5 needs at least 3"),
        ("raid0(mine.toml, 2)", "cannot read the drive file"),
    ],
)
def test_a_drive_that_cannot_be_is_said_so(write_study, device, said):
    path = write_study(('"ssd-sata"', f'"{device}"'))
    message = refusal(path)
    assert message.startswith(f'{path}:6: stack.device: is "{device}": ')
    assert said in message


def test_a_drive_file_that_is_none_is_said_so(write_study, tmp_path):
    path = write_study(('"ssd-sata"', '"mine.toml"'))
    (tmp_path / "mine.toml").write_text("kind = 'rocket'\n")
    assert refusal(path).startswith(f'{path}:6: stack.device: is "mine.toml": ')


def test_a_script_that_is_not_there_is_looked_for_beside_the_study(write_study, tmp_path):
    path = write_study(('"slap"', '"script"\nfile = "mine.sql"'), ("queries = 1000", "events = 1000"))
    said = f'{path}:17: workload.file: is "mine.sql": {tmp_path / "mine.sql"} can\'t be read: No such file or directory'
    assert refusal(path) == said


def test_a_log_and_its_dump_are_looked_for_beside_the_study(write_study, tmp_path):
    path = write_study(('"slap"', '"replay-log"\nfile = "x.log"\nsetup = "y.sql"'), ("queries = 1000\n", ""))
    said = refusal(path)
    for line, field, name in ((17, "file", "x.log"), (18, "setup", "y.sql")):
        why = f"{tmp_path / name} can't be read: No such file or directory"
        assert f'{path}:{line}: workload.{field}: is "{name}": {why}' in said


def test_a_script_that_is_no_text_is_said_so(write_study, tmp_path):
    path = write_study(('"slap"', '"script"\nfile = "mine.sql"'), ("queries = 1000", "events = 1000"))
    (tmp_path / "mine.sql").write_bytes(b"SELECT '\xe9'")
    assert refusal(path) == f'{path}:17: workload.file: is "mine.sql", which is not UTF-8 text'


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("version = = 1\n", ":1: not valid TOML: Invalid value at column 11"),
        ("[study]\n[study]\n", ":2: not valid TOML: Cannot declare ('study',) twice at column 7"),
        ("version = 99999999999999999999\n", ":1: not valid TOML: integer number overflowed at column 11"),
        (f"version = {'[' * 20000}{']' * 20000}\n", ": not valid TOML: it is nested too deep"),
        (
            "[stack]\ndevice = here  # this disk\n",
            ':2: not valid TOML: Invalid value at column 10; text stands in quotes: device = "here"',
        ),
        (
            "version: 1\n",
            (
                ":1: not valid TOML: Expected '=' after a key in a key/value pair at column 8;"
                " a field is written version = ..."
            ),
        ),
        (
            "\n[levels.größer]\n",
            (
                ":2: not valid TOML: Expected ']' at the end of a table declaration at column 11;"
                " a name with other than A-Z, a-z, 0-9, - and _ stands in quotes"
            ),
        ),
        ("a = [1,\n", ": not valid TOML: Invalid value (at end of document)"),
    ],
)
def test_a_file_that_is_not_toml(write_study, text, reason):
    path = write_study(text=text)
    assert refusal(path) == f"{path}{reason}"


def test_of_a_drive_that_is_not_known_nothing_else_is_asked(write_study):
    text = 'version = 1\n[study]\ntitle = "t"\n[stack]\ndevice = "hdd-72000"\n[workload]\nkind = "slap"\n'
    path = write_study(text=text.replace('"slap"', '"slap"\nload = "write"\nduration = "5s"'))
    assert refusal(path).startswith(f'{path}:5: stack.device: is "hdd-72000"; known are ')
    assert "is missing" not in refusal(path)


@pytest.mark.parametrize(
    ("text", "holds"),
    [("", "is empty"), ("# nothing\n", "is empty"), ("version = 1\n", "has no section but its version")],
)
def test_an_empty_file_is_told_in_one_sentence_what_a_study_needs(write_study, text, holds):
    path = write_study(text=text)
    assert refusal(path) == (
        f"{path}: {holds}; a study needs [study], [stack] and [workload]: "
        "write them, or have dbdyno new write a study to start from"
    )


# ESC, DEL, the one-byte CSI, a right-to-left override: each written as a TOML escape.
@pytest.mark.parametrize("escape", ["\\u001b[31m", "\\u007f", "\\u009b31m", "\\u202e"])
@pytest.mark.parametrize(
    "change",
    [
        ('"mq-deadline"', '"@"'),
        ('"ssd-sata"', '"@"'),
        ('"ssd-sata"', '"@.toml"'),
        (DEVICES, '["@", "@"]'),
        ('size = "1GiB"', '"@" = 1'),
        ('"1GiB"', '"4 @"'),
        ("[queue]", '["@"]'),
        (POOL, '"@" = 1'),
        (POOL, 'x = ["a@", "b"]\n[design]\nbaseline = { x = "c" }\n[workload]\n[x]'),
        ('"hdd-7200" }', '"@" }'),
        ("{ device", '{ "@"'),
        ('kind = "slap"', 'kind = "@"'),
    ],
    ids=str,
)
def test_what_a_terminal_would_obey_never_reaches_it(write_study, change, escape):
    path = write_study((change[0], change[1].replace("@", escape)))
    said = refusal(path)
    assert all(char.isprintable() or char == "\n" for char in said)


# Whatever stands where a value is expected, the answer is a study or a refusal that names a line.
VALUES = st.recursive(
    st.one_of(
        st.integers(-(2**63), 2**63 - 1).map(str),
        st.floats(allow_nan=False, allow_infinity=False).map(repr),
        st.sampled_from(["true", "false", "inf", "nan", "1979-05-27", "07:32:00", "{}", "[]", '""', '"here"', '"4G"']),
        st.text("abc 0.%[]{}#=", max_size=9).map('"{}"'.format),
    ),
    lambda inner: st.one_of(
        st.lists(inner, max_size=3).map(lambda items: f"[{', '.join(items)}]"),
        inner.map("{{ a = {} }}".format),
    ),
    max_leaves=4,
)
FIELDS = [
    'title = "A study"',
    DEVICES,
    'size = "1GiB"',
    "nr_requests = 64",
    POOL,
    'kind = "slap"',
    "clients = 10",
    BASELINE,
    "blocks = 6",
]


@settings(max_examples=120, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(field=st.sampled_from(FIELDS), value=VALUES)
def test_any_value_is_taken_or_refused_in_words(write_study, field, value):
    new = value if field == DEVICES else f"{field.split(' = ')[0]} = {value}"
    path = write_study((field, new))
    try:
        study = load_study(path)
    except UserError as refused:
        assert all(line.startswith(str(path)) for line in str(refused).splitlines())  # noqa: PT017
    else:
        assert all(spec.stack.device for _, spec in study.combinations())
