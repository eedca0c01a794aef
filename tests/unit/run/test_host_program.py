"""What programs of ours on hosts do beside their work."""

from dbdyno.run import host_program
from tests.support import wait_for


def test_a_program_reports_that_it_is_alive_until_it_ends(monkeypatch):
    monkeypatch.setattr(host_program, "BEAT_SECONDS", 0.001)
    sent = []
    with host_program.heartbeat(sent.append):
        wait_for(lambda: len(sent) >= 3)
    count = len(sent)
    assert sent == [{"beats": number} for number in range(1, count + 1)]
