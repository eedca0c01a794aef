"""A study from a command line: where its fields go, and what is refused."""

import tomllib

import pytest

from dbdyno.errors import UserError
from dbdyno.plan.plan import make_plan
from dbdyno.study.load import load_study
from dbdyno.study.new_study import study_text

WRITE = {"kind": "slap", "load": "write", "clients": 10, "duration": "5s"}


def written(*fields, **more):
    return tomllib.loads(study_text(fields, WRITE | more))


def test_fields_go_where_a_study_has_them(tmp_path):
    text = study_text(
        [
            "device=hdd-7200,ssd-sata",
            "nr_requests=64",
            "innodb_flush_log_at_trx_commit=1,2",
            "mount=noatime",
            "awake=auto",
        ],
        WRITE,
    )
    file = tmp_path / "study.toml"
    file.write_text(text)
    plan = make_plan(load_study(file))
    assert len(plan.specs) == 4
    read = tomllib.loads(text)
    assert read["stack"] == {"device": ["hdd-7200", "ssd-sata"], "size": "2GiB", "filesystem": "ext4"}
    assert read["queue"] == {"nr_requests": 64}
    assert read["filesystem"] == {"mount": "noatime"}
    assert read["host"] == {"awake": "auto"}
    assert read["server"]["settings"] == {"innodb_flush_log_at_trx_commit": [1, 2]}
    assert read["study"]["title"] == "device: hdd-7200 or ssd-sata; innodb_flush_log_at_trx_commit: 1 or 2"


@pytest.mark.parametrize(
    ("given", "levels"),
    [
        ("device=raid1(hdd-15k, 2),ssd-sata", ["raid1(hdd-15k, 2)", "ssd-sata"]),
        ('device="mine.toml",ssd-sata', ["mine.toml", "ssd-sata"]),
    ],
)
def test_commas_in_brackets_and_quotes_are_a_level_s_own(given, levels):
    assert written(given)["stack"]["device"] == levels


def test_a_folder_of_this_machine_gets_no_filesystem():
    assert written("device=here", "clients=1,8")["stack"] == {"device": "here"}
    assert written("device=here", "clients=1,8")["workload"]["clients"] == [1, 8]


def test_a_hostile_level_stays_a_text():
    level = 'x"\n[design]\nblocks = 1\\'
    text = study_text([f"device={level}", "clients=1,2"], WRITE)
    assert tomllib.loads(text)["design"]["blocks"] == 8


@pytest.mark.parametrize(
    ("fields", "more", "message"),
    [
        (["scheduler"], {}, "'scheduler' is not FIELD=LEVEL"),
        (["device="], {}, "is not FIELD=LEVEL"),
        (["schedular=none,bfq", "device=nvme"], {}, 'Did you mean "scheduler"'),
        (["device=nvme"], {}, "give a field with levels to compare"),
        (["scheduler=none,bfq"], {}, "choose a device"),
        (["device=nvme,hdd-7200", "device=ssd-sata"], {}, "device is given twice"),
        (["device=nvme,hdd-7200"], {"kind": "slop"}, "--kind slop is not a kind of load; there are bonnie, bulk"),
    ],
)
def test_what_is_refused(fields, more, message):
    with pytest.raises(UserError, match=message.replace("(", r"\(").replace("'", "'")):
        study_text(fields, WRITE | more)
