"""What Ray's actor on a host costs while nothing is asked of it: its main thread sleeps, and wakes for questions."""

import json
import subprocess
import sys

SCRIPT = """
import json, threading, time
from dbdyno.hosts.ray_side import SLEEP_MAX_SECONDS, RaySide

def looks(seconds):
    found, until = 0, time.monotonic() + seconds
    while time.monotonic() < until:
        time.sleep(0.01)  # as often as Ray's main loop
        found += 1
    return found / seconds

side = RaySide()
awake = looks(0.3)
side._asked -= 100  # a while ago
looks(0.2)
asleep = looks(2.5)

def ask():
    while True:
        side.content("/dev/null", 0)
        time.sleep(0.1)

threading.Thread(target=ask, daemon=True).start()
looks(SLEEP_MAX_SECONDS)
print(json.dumps([awake, asleep, looks(1)]))
"""


def test_the_main_thread_sleeps_while_nothing_is_asked():
    done = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, timeout=60, check=True)
    awake, asleep, again = json.loads(done.stdout)
    assert asleep < 10 < min(awake, again)
