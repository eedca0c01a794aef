"""What a good study file becomes: factors in the order of the file, and every combination of their levels."""

import shutil
from pathlib import Path

import pytest

from dbdyno.plan.plan import make_plan
from dbdyno.study.drives import drive_files
from dbdyno.study.load import load_study
from dbdyno.study.schema import TrialSpec
from dbdyno.study.workloads import KINDS
from tests.examples import example_of

ROOT = Path(__file__).parents[3]
SHIPPED = sorted((ROOT / "studies").rglob("*.toml"))
ONE_DEVICE = ('["hdd-7200", "ssd-sata"]', '"ideal"')
NO_BASELINE = ('baseline = { device = "hdd-7200" }\n', "")


def test_factors_stand_in_the_order_of_the_file(load):
    text = """\
version = 1
[workload]
kind = "slap"
queries = [100, 200]
clients = [1, 2]
[server.settings]
sync_binlog = [true, false]
[study]
title = "backwards"
[stack]
filesystem = ["xfs", "ext4"]
size = "1GiB"
device = ["ssd-sata", "hdd-7200"]
"""
    study = load(text=text)
    assert [(factor.name, factor.path, factor.labels()) for factor in study.factors] == [
        ("queries", ("workload", "queries"), ["100", "200"]),
        ("clients", ("workload", "clients"), ["1", "2"]),
        ("sync_binlog", ("server", "settings", "sync_binlog"), ["true", "false"]),
        ("filesystem", ("stack", "filesystem"), ["xfs", "ext4"]),
        ("device", ("stack", "device"), ["ssd-sata", "hdd-7200"]),
    ]


def test_every_combination_once_the_last_factor_fastest(load):
    study = load(("clients = 10", "clients = [10, 20]"))
    made = list(study.combinations())
    assert [levels for levels, _ in made] == [
        {"device": "hdd-7200", "clients": "10"},
        {"device": "hdd-7200", "clients": "20"},
        {"device": "ssd-sata", "clients": "10"},
        {"device": "ssd-sata", "clients": "20"},
    ]
    for levels, spec in made:
        assert spec.stack.device == levels["device"]
        assert spec.workload.clients == int(levels["clients"])
        assert spec.stack.size == 1 << 30


def test_scalars_alone_make_one_treatment(load):
    study = load(ONE_DEVICE, NO_BASELINE)
    assert study.factors == ()
    [(levels, spec)] = study.combinations()
    assert levels == {}
    assert isinstance(spec, TrialSpec)


def test_a_list_of_one_is_a_factor(load):
    [factor] = load(("clients = 10", "clients = [10]"), ONE_DEVICE, NO_BASELINE).factors
    assert (factor.name, factor.levels) == ("clients", (10,))


def test_the_same_field_of_two_sections_goes_by_its_section(load):
    study = load(
        ("queries = 1000", "queries = [1000, 2000]"),
        ('innodb_buffer_pool_size = "256M"', "queries = [1, 2]"),
        ('device = "hdd-7200" }', '"workload.queries" = 2000, device = "ssd-sata" }'),
    )
    assert [factor.name for factor in study.factors] == ["device", "server.settings.queries", "workload.queries"]
    assert study.design.baseline == {"workload.queries": 2000, "device": "ssd-sata"}


def test_a_server_setting_is_a_factor(load):
    study = load(ONE_DEVICE, NO_BASELINE, ('"256M"', '["64M", 134217728]'))
    made = [(levels, spec.server.settings) for levels, spec in study.combinations()]
    name = "innodb_buffer_pool_size"
    assert made == [({name: "64M"}, {name: "64M"}), ({name: "134217728"}, {name: 134217728})]


def test_tunables_processors_and_the_class_of_i_o_are_factors(load):
    study = load(
        ONE_DEVICE,
        NO_BASELINE,
        ("nr_requests = 64", "write_cache = ['write back', 'write through']\n[queue.iosched]\nfifo_batch = [1, 16]"),
        ('memory = "1GiB"', 'memory = "1GiB"\nserver_cpus = ["0", "0-1"]'),
        ("[server.settings]", '[server]\nionice = ["idle", "best-effort:0"]\n[server.settings]'),
    )
    assert [".".join(factor.path) for factor in study.factors] == [
        "stack.server_cpus",
        "queue.write_cache",
        "queue.iosched.fifo_batch",
        "server.ionice",
    ]
    made = [spec for _, spec in study.combinations()]
    assert len(made) == 16
    assert (made[-1].queue.iosched, made[-1].server.ionice) == ({"fifo_batch": 16}, "best-effort:0")
    assert (made[0].queue.iosched, made[0].stack.server_cpus) == ({"fifo_batch": 1}, "0")


def test_true_and_one_are_two_levels(load):
    study = load(ONE_DEVICE, NO_BASELINE, ('innodb_buffer_pool_size = "256M"', "x = [true, 1]"))
    values = [spec.server.settings["x"] for _, spec in study.combinations()]
    assert [type(value) for value in values] == [bool, int]


def test_a_baseline_names_a_level_as_the_file_spells_it(load):
    study = load(
        ("nr_requests = 64", "rotational = [true, false]\nnr_requests = [64, 128]"),
        ('device = "hdd-7200"', "rotational = false, nr_requests = 128"),
    )
    assert study.design.baseline == {"rotational": False, "nr_requests": 128}


def test_units_are_read(load):
    spec = next(spec for _, spec in load(("queries = 1000", 'duration = "5min"\nwarmup = "250ms"')).combinations())
    assert (spec.workload.duration, spec.workload.warmup, spec.stack.memory) == (300.0, 0.25, 1 << 30)


def test_a_drive_file_is_found_beside_the_study_and_kept_as_absolute(write_study, tmp_path):
    path = write_study(('"ssd-sata"', '"drives/mine.toml"'))
    (tmp_path / "drives").mkdir()
    shutil.copy(ROOT / "crates/dbdyno-device/drives/ssd-sata.toml", tmp_path / "drives/mine.toml")
    devices = [spec.stack.device for _, spec in load_study(path).combinations()]
    assert devices == ["hdd-7200", str((tmp_path / "drives/mine.toml").resolve())]


def test_a_drive_file_is_found_within_the_name_of_an_array(write_study, tmp_path):
    path = write_study(('"ssd-sata"', '"raid0(mine.toml(queue_depth=1), 2, 64KiB)"'))
    shutil.copy(ROOT / "crates/dbdyno-device/drives/ssd-sata.toml", tmp_path / "mine.toml")
    devices = [spec.stack.device for _, spec in load_study(path).combinations()]
    assert devices == ["hdd-7200", f"raid0({(tmp_path / 'mine.toml').resolve()}(queue_depth=1), 2, 64KiB)"]
    assert drive_files(devices[1]) == [str((tmp_path / "mine.toml").resolve())]


def test_a_plan_keeps_the_drive_files_of_an_array_and_of_its_members(write_study, tmp_path):
    array, member = (tmp_path / "array.toml").resolve(), (tmp_path / "member.toml").resolve()
    array.write_text('title = "array"\n[raid]\nlevel = 0\nmembers = ["member.toml", "ideal"]\n')
    member.write_text('title = "member"\n[ideal]\nlatency_us = 1.0\n')
    made = make_plan(load_study(write_study(('"ssd-sata"', '"array.toml"'))))
    assert list(made.own_files["drive_files"]) == [str(array), str(member)]


def test_loading_leaves_the_text_as_it_was(load, write_study):
    path = write_study()
    assert load().text == path.read_text(encoding="utf-8")


@pytest.mark.parametrize("path", SHIPPED, ids=lambda path: str(path.relative_to(ROOT)))
def test_shipped_studies_are_without_mistake_or_warning(path):
    study = load_study(path)
    assert study.about.question
    assert study.about.expect
    assert list(make_plan(study).warnings()) == []


def test_every_kind_of_load_has_an_example():
    shipped = {spec.workload.kind for path in SHIPPED for _, spec in load_study(path).combinations()}
    assert shipped | {kind for kind in KINDS if example_of(kind)} == set(KINDS)
