"""The block queue: what is set is read back, and what was is put back."""

from pathlib import Path

import pytest

from dbdyno.errors import TrialError
from dbdyno.stack.layer import BlockDevice, StackContext
from dbdyno.stack.layers.queue import Queue, read_knob, write_knob
from dbdyno.stack.undo_log import Journal
from dbdyno.study.schema import QueueSection


@pytest.fixture
def queue(tmp_path, monkeypatch):
    """Make a block queue of plain files; what is written is what is read back."""
    folder = tmp_path / "sys/block/sdx/queue"
    folder.mkdir(parents=True)
    for name, value in {
        "scheduler": "none [mq-deadline] kyber",
        "rotational": "1",
        "nr_requests": "64",
        "read_ahead_kb": "128",
        "wbt_lat_usec": "75000",
    }.items():
        (folder / name).write_text(value + "\n")
    real = Path
    monkeypatch.setattr(
        "dbdyno.stack.layers.queue.Path",
        lambda path: real(str(path).replace("/sys/block", str(tmp_path / "sys/block"))),
    )
    return folder


def stand(*, disposable):
    device = BlockDevice(Path("/dev/sdx"), rotational=True, disposable=disposable)
    return StackContext(Journal("test"), Path("/nowhere"), device=device)


def test_a_real_device_gets_its_queue_back(queue):
    below = stand(disposable=False)
    before = {path.name: read_knob(path) for path in queue.iterdir()}
    with Queue("kyber", QueueSection(nr_requests=256)).raised(below) as above:
        assert above.observed["queue"] == {**before, "scheduler": "kyber", "nr_requests": "256"}
    assert {path.name: read_knob(path) for path in queue.iterdir()} == before
    below.journal.close()
    assert not below.journal.path.exists()


@pytest.mark.usefixtures("queue")
def test_what_undoes_a_queue_is_written_before_it_is_set(monkeypatch):
    below = stand(disposable=False)
    seen = []

    def write(path, value):
        seen.append((path.name, below.journal.path.read_text().count('"RestoreSysfs"')))
        path.write_text(value)

    monkeypatch.setattr("dbdyno.stack.layers.queue.write_knob", write)
    with Queue("none", QueueSection(nr_requests=32, read_ahead_kb=0)).raised(below):
        pass
    assert seen == [("scheduler", 5), ("nr_requests", 5), ("read_ahead_kb", 5)]


def test_a_queue_setting_that_did_not_take_fails_the_trial_and_is_undone(queue, monkeypatch):
    monkeypatch.setattr(
        "dbdyno.stack.layers.queue.write_knob", lambda path, value: path.write_text(value.replace("256", "255"))
    )
    with (
        pytest.raises(TrialError, match="nr_requests: asked for 256, the kernel took 255"),
        Queue(None, QueueSection(nr_requests=256)).raised(stand(disposable=False)),
    ):
        pass
    assert (queue / "nr_requests").read_text().strip() == "64"


def test_an_emulated_disk_is_told_what_it_is(queue):
    with Queue("none", QueueSection()).raised(stand(disposable=True)) as above:
        observed = above.observed["queue"]
    assert (observed["rotational"], observed["wbt_lat_usec"]) == ("1", "75000")
    with Queue("bfq", QueueSection(rotational=False)).raised(stand(disposable=True)) as above:
        assert above.observed["queue"]["rotational"] == "0"
    assert (queue / "scheduler").read_text() == "bfq"


def test_a_knob_that_can_not_be_written_names_what_is_offered(tmp_path):
    with pytest.raises(TrialError) as refused:
        read_knob(tmp_path / "scheduler")
    assert str(refused.value) == f"{tmp_path / 'scheduler'}: No such file or directory"
    (tmp_path / "nr_requests").mkdir()
    with pytest.raises(TrialError) as refused:
        write_knob(tmp_path / "nr_requests", "9")
    assert str(refused.value) == f"write '9' to {tmp_path / 'nr_requests'}: Is a directory"
