"""A real browser, for pages that a person will open: one headless Chromium a process, driven through a pipe."""

import atexit
import base64
import contextlib
import functools
import importlib.util
import json
import os
import select
import shutil
import subprocess
import tempfile
import time
from pathlib import Path

import pytest

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
PATIENCE_S = 60
SETTLED = "document.readyState === 'complete'"
FRAMES = "new Promise(done => requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 60))))"
AXE = Path(importlib.util.find_spec("axe_core_python").origin).parent / "axe.min.js"
SERIOUS = """axe.run(document, {resultTypes: ['violations']}).then(found => found.violations
    .filter(one => one.impact === 'serious' || one.impact === 'critical')
    .map(one => one.id + ': ' + one.nodes.map(node => node.target + ' ' + node.failureSummary).join(' | ')))"""
KEYS = {
    "Tab": 9,
    "Enter": 13,
    "Escape": 27,
    " ": 32,
    "End": 35,
    "Home": 36,
    "ArrowLeft": 37,
    "ArrowRight": 39,
    "+": 187,
}


def browser(test):
    """Mark a test that needs a browser."""
    return pytest.mark.browser(pytest.mark.skipif(CHROMIUM is None, reason="no Chromium on this host")(test))


class Chromium:
    """The DevTools protocol over a pair of pipes: JSON texts that end in a zero byte."""

    def __init__(self):
        self.profile = tempfile.mkdtemp(prefix="dbdyno-browser-")
        theirs_in, self.out = os.pipe()
        self.inn, theirs_out = os.pipe()
        flags = ["headless", "no-sandbox", "disable-gpu", "disable-quic", "no-first-run", "disable-sync", "mute-audio"]
        flags += ["disable-background-networking", "disable-component-update", "hide-scrollbars"]
        flags += ["remote-debugging-pipe", f"user-data-dir={self.profile}"]
        command = [CHROMIUM, *(f"--{flag}" for flag in flags), "about:blank"]
        self.process = subprocess.Popen(
            ["bash", "-c", f'exec "$@" 3<&{theirs_in} 4>&{theirs_out}', "bash", *command],
            pass_fds=(theirs_in, theirs_out),
            stderr=subprocess.DEVNULL,
        )
        os.close(theirs_in)
        os.close(theirs_out)
        self.number, self.rest, self.events = 0, b"", []

    def call(self, method, session=None, **params):
        """Return what the browser answers to a command; what else it says meanwhile goes to ``events``."""
        self.number += 1
        message = {"id": self.number, "method": method, "params": params}
        os.write(self.out, json.dumps(message | ({"sessionId": session} if session else {})).encode() + b"\0")
        until = time.monotonic() + PATIENCE_S
        while time.monotonic() < until:
            found = self._message(until)
            if found.get("id") == self.number:
                assert "error" not in found, f"{method}: {found['error']}"
                return found["result"]
            self.events.append(found)
        raise TimeoutError(method)

    def _message(self, until):
        while b"\0" not in self.rest:
            ready, _, _ = select.select([self.inn], [], [], max(0, until - time.monotonic()))
            part = os.read(self.inn, 1 << 20) if ready else b""
            if not part:
                raise TimeoutError("the browser does not answer")
            self.rest += part
        text, _, self.rest = self.rest.partition(b"\0")
        return json.loads(text)

    def close(self):
        with contextlib.suppress(OSError, TimeoutError):
            self.call("Browser.close")
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.process.wait(10)
        self.process.kill()
        self.process.wait()
        os.close(self.out)
        os.close(self.inn)
        shutil.rmtree(self.profile, ignore_errors=True)


@functools.cache
def chromium():
    """Return the one browser, which ends with the tests."""
    found = Chromium()
    atexit.register(found.close)
    return found


class Tab:
    """A page as a reader sees it."""

    def __init__(self, target, session):
        self.target, self.session = target, session

    def call(self, method, **params):
        return chromium().call(method, self.session, **params)

    def value(self, expression):
        """Return what JavaScript makes of ``expression``, waiting for it if it is a promise."""
        done = self.call("Runtime.evaluate", expression=expression, returnByValue=True, awaitPromise=True)
        assert "exceptionDetails" not in done, done["exceptionDetails"]
        return done["result"].get("value")

    def wait(self, expression):
        until = time.monotonic() + PATIENCE_S
        while not self.value(expression):
            assert time.monotonic() < until, expression
            time.sleep(0.02)

    def wait_for_address(self, part):
        """Wait until the page's address has this part, without asking the page, which ends when it leads to another."""
        until = time.monotonic() + PATIENCE_S
        while part not in (address := self._address()):
            assert time.monotonic() < until, (part, address)
            time.sleep(0.02)

    def _address(self):
        return chromium().call("Target.getTargetInfo", targetId=self.target)["targetInfo"]["url"]

    def press(self, key, shift=False):
        code = {"key": key, "code": "Space" if key == " " else key, "windowsVirtualKeyCode": KEYS[key]}
        code["modifiers"] = 8 if shift else 0
        self.call("Input.dispatchKeyEvent", type="keyDown", **code, **({"text": key} if len(key) == 1 else {}))
        self.call("Input.dispatchKeyEvent", type="keyUp", **code)
        self.value(FRAMES)

    def point_at(self, x, y):
        self.call("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.value(FRAMES)

    def png(self, path, **clip):
        """Write what is seen, or the whole page where its ``height`` is given as 0."""
        if clip.get("height") == 0:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            clip = {"x": 0, "y": 0, "width": size["width"], "height": size["height"], "scale": 1}
        extra = {"clip": {"scale": 1, **clip}, "captureBeyondViewport": True} if clip else {}
        Path(path).write_bytes(base64.b64decode(self.call("Page.captureScreenshot", format="png", **extra)["data"]))

    def pdf(self):
        return base64.b64decode(
            self.call("Page.printToPDF", printBackground=True, paperWidth=8.27, paperHeight=11.69)["data"]
        )

    def _events(self):
        return [one for one in chromium().events if one.get("sessionId") == self.session]

    def fetched(self):
        """Return the addresses of all that the page has asked for so far."""
        return [
            one["params"]["request"]["url"] for one in self._events() if one["method"] == "Network.requestWillBeSent"
        ]

    def console(self):
        """Return what the console has said so far, exceptions included."""
        self.value(FRAMES)
        about = self._events()
        logged = [one["params"]["entry"] for one in about if one["method"] == "Log.entryAdded"]
        thrown = [one["params"]["exceptionDetails"] for one in about if one["method"] == "Runtime.exceptionThrown"]
        said = [one["params"]["args"] for one in about if one["method"] == "Runtime.consoleAPICalled"]
        return [*logged, *thrown, *said]


@contextlib.contextmanager
def opened(page, folder, *, width=1280, height=900, dark=False):
    """Show a page (its text) in a window of so many pixels, light or dark."""
    path = folder / "report.html"
    path.write_text(page, encoding="utf-8")
    with opened_file(path, width=width, height=height, dark=dark) as tab:
        yield tab


def opened_file(path, *, width=1280, height=900, dark=False):
    """Show a page that is a file."""
    return opened_at(path.as_uri(), width=width, height=height, dark=dark)


@contextlib.contextmanager
def opened_at(address, *, leads_to="", width=1280, height=900, dark=False):
    """Show the page at an address, or the one that it leads to, whose address has this part."""
    target = chromium().call("Target.createTarget", url="about:blank")["targetId"]
    tab = Tab(target, chromium().call("Target.attachToTarget", targetId=target, flatten=True)["sessionId"])
    try:
        for domain in ("Page", "Runtime", "Log", "Network"):
            tab.call(f"{domain}.enable")
        tab.call(
            "Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=width < 600
        )
        scheme = {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}
        tab.call("Emulation.setEmulatedMedia", features=[scheme])
        tab.call("Page.navigate", url=address)
        tab.wait_for_address(leads_to)
        tab.wait(f"location.protocol !== 'about:' && {SETTLED}")
        tab.value(FRAMES)
        yield tab
    finally:
        chromium().call("Target.closeTarget", targetId=target)


def in_browser(page, folder, width=1280):
    """Return (DOM after the scripts ran, what the console said)."""
    with opened(page, folder, width=width) as tab:
        return tab.value("document.documentElement.outerHTML"), tab.console()
