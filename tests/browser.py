"""A real browser for tests: Chromium, driven through its own debugging pipe.

Nothing but the browser is needed: no driver, no package. It runs without a network of its own
making, and every request that a page makes is written down.
"""

import base64
import importlib.util
import json
import os
import select
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import Any

CHROMIUM = next(
    filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None
)
WHY = "no Chromium is installed (Debian: apt-get install chromium)"


def _axe_core() -> Path | None:
    """Return axe-core's one file: what AXE_CORE names, or that of an installed package."""
    if "AXE_CORE" in os.environ:
        return Path(os.environ["AXE_CORE"])
    # Found and not imported: it would import a driver of its own, which is not needed.
    package = importlib.util.find_spec("axe_playwright_python")
    if package is None or not package.submodule_search_locations:
        return None
    return Path(package.submodule_search_locations[0]) / "axe.min.js"


AXE = _axe_core()
WHY_NOT_AXE = "no axe-core (pip install --no-deps axe-playwright-python, or AXE_CORE=a file)"
_PATIENCE = 120.0  # seconds; a busy machine is slow, and only a dead browser takes this long

# The browser reads from its descriptor 3 and writes to its descriptor 4.
_BECOME = """
import fcntl, os, sys
read, write = (fcntl.fcntl(int(fd), fcntl.F_DUPFD, 10) for fd in sys.argv[1:3])
os.dup2(read, 3)
os.dup2(write, 4)
os.execvp(sys.argv[3], sys.argv[3:])
"""


class Browser:
    """One browser with one page."""

    def __init__(self) -> None:
        self._home = tempfile.TemporaryDirectory(ignore_cleanup_errors=True)
        read, self._out = os.pipe()
        self._in, write = os.pipe()
        command = [
            CHROMIUM,
            "--headless=new",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-dev-shm-usage",
            "--disable-background-networking",
            "--no-first-run",
            "--hide-scrollbars",
            "--remote-debugging-pipe",
            f"--user-data-dir={self._home.name}",
            "about:blank",
        ]
        self._process = subprocess.Popen(
            [sys.executable, "-c", _BECOME, str(read), str(write), *command],
            pass_fds=(read, write),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        os.close(read)
        os.close(write)
        self._number = 0
        self._left = b""
        self._session: str | None = None
        self.requests: list[str] = []
        self.errors: list[str] = []
        try:
            self._attach()
        except BaseException:
            self.close()
            raise

    def _attach(self) -> None:
        targets = self.send("Target.getTargets")["targetInfos"]
        page = next(target for target in targets if target["type"] == "page")
        attached = self.send("Target.attachToTarget", targetId=page["targetId"], flatten=True)
        self._session = attached["sessionId"]
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.send(f"{domain}.enable")

    def close(self) -> None:
        self._process.kill()
        self._process.wait()
        os.close(self._out)
        os.close(self._in)
        self._home.cleanup()

    def send(self, method: str, **params: Any) -> Any:
        """Call a method of the debugging protocol and return its result."""
        self._number += 1
        message: dict[str, Any] = {"id": self._number, "method": method, "params": params}
        if self._session:
            message["sessionId"] = self._session
        os.write(self._out, json.dumps(message).encode() + b"\0")
        while True:
            answer = self._receive()
            if answer.get("id") == self._number:
                if "error" in answer:
                    raise AssertionError(f"{method}: {answer['error']}")
                return answer["result"]

    def open(self, path: Path, *, width: int = 1440, height: int = 900, dark: bool = False):
        """Open a file; the page is ready when this returns."""
        self.size(width, height)
        self.scheme("dark" if dark else "light")
        self.requests.clear()
        self.errors.clear()
        self.send("Page.navigate", url=path.resolve().as_uri())
        self.wait("document.readyState === 'complete' && location.protocol === 'file:'")

    def size(self, width: int, height: int = 900) -> None:
        self.send(
            "Emulation.setDeviceMetricsOverride",
            width=width,
            height=height,
            deviceScaleFactor=1,
            mobile=False,
        )

    def scheme(self, name: str) -> None:
        features = [{"name": "prefers-color-scheme", "value": name}]
        self.send("Emulation.setEmulatedMedia", features=features)

    def run(self, script: str) -> Any:
        """Evaluate an expression in the page and return its value."""
        answer = self.send(
            "Runtime.evaluate", expression=script, returnByValue=True, awaitPromise=True
        )
        if "exceptionDetails" in answer:
            raise AssertionError(answer["exceptionDetails"])
        return answer["result"].get("value")

    def wait(self, condition: str) -> None:
        """Wait until an expression is true."""
        end = time.monotonic() + _PATIENCE
        while not self.run(f"Boolean({condition})"):
            assert time.monotonic() < end, f"never came true: {condition}"
            time.sleep(0.05)

    def settle(self) -> None:
        """Wait until what was changed is drawn: input goes to what the last frame showed."""
        self.run("new Promise((go) => requestAnimationFrame(() => requestAnimationFrame(go)))")

    def move(self, x: float, y: float) -> None:
        """Move the pointer, and wait until the page has answered."""
        self.settle()
        self.send("Input.dispatchMouseEvent", type="mouseMoved", x=x, y=y)
        self.settle()

    def click(self, selector: str) -> None:
        """Click at the middle of an element, as a person does."""
        x, y = self.middle(selector)
        self.settle()
        for kind in ("mouseMoved", "mousePressed", "mouseReleased"):
            self.send(
                "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", clickCount=1
            )

    def drag(self, start: tuple[float, float], end: tuple[float, float], *, by: str) -> None:
        """Drag from one point to another, by "mouse" or by "touch"."""
        between = ((start[0] + end[0]) / 2, (start[1] + end[1]) / 2)
        self.settle()
        if by == "touch":
            for kind, points in (
                ("touchStart", [start]),
                ("touchMove", [between]),
                ("touchMove", [end]),
                ("touchMove", [(end[0], end[1] - 1)]),  # the last one may be held back
                ("touchMove", [end]),
                ("touchEnd", []),
            ):
                places = [{"x": x, "y": y} for x, y in points]
                self.send("Input.dispatchTouchEvent", type=kind, touchPoints=places)
                self.settle()  # moves of one frame become one
        else:
            for kind, (x, y) in (
                ("mouseMoved", start),
                ("mousePressed", start),
                ("mouseMoved", between),
                ("mouseMoved", end),
                ("mouseReleased", end),
            ):
                held = {} if kind == "mouseMoved" else {"clickCount": 1}
                self.send(
                    "Input.dispatchMouseEvent", type=kind, x=x, y=y, button="left", **held
                )
        self.settle()

    def tap(self, selector: str) -> None:
        """Tap the middle of an element with a finger."""
        x, y = self.middle(selector)
        self.settle()
        self.send("Input.dispatchTouchEvent", type="touchStart", touchPoints=[{"x": x, "y": y}])
        self.send("Input.dispatchTouchEvent", type="touchEnd", touchPoints=[])
        self.settle()

    def middle(self, selector: str) -> tuple[float, float]:
        """Scroll an element into view and return the middle of it."""
        found = self.run(
            f"(() => {{ const e = document.querySelector({json.dumps(selector)});"
            "e.scrollIntoView({block: 'center', inline: 'center'});"
            "const b = e.getBoundingClientRect();"
            "return [b.left + b.width / 2, b.top + b.height / 2]; })()"
        )
        return found[0], found[1]

    def press(self, key: str, code: int = 0, text: str = "") -> None:
        """Press and release a key: "ArrowDown", "Tab" ..."""
        codes = {"Tab": 9, "Enter": 13, "Escape": 27, " ": 32, "End": 35, "Home": 36}
        codes |= {"ArrowLeft": 37, "ArrowUp": 38, "ArrowRight": 39, "ArrowDown": 40}
        number = code or codes.get(key, 0)
        text = text or {"Enter": "\r", " ": " "}.get(key, "")
        for kind in ("keyDown", "keyUp"):
            self.send(
                "Input.dispatchKeyEvent",
                type=kind,
                key=key,
                code=key,
                windowsVirtualKeyCode=number,
                text=text if kind == "keyDown" else "",
            )

    def axe(self) -> list[list[str]]:
        """Return what axe-core finds wrong with the page: name, impact, and an element."""
        assert AXE is not None, WHY_NOT_AXE
        self.run(AXE.read_text("utf-8") + "; 0")
        return self.run(
            "axe.run().then((all) => all.violations.map((one) => "
            "[one.id, one.impact, one.nodes[0].html.slice(0, 120)]))"
        )

    def hold(self, path: Path) -> None:
        """Hold a page to axe-core and to its window: light and wide, dark and narrow."""
        for width, dark in ((1440, False), (360, True)):
            self.open(path, width=width, dark=dark)
            self.settle()
            faults = [fault for fault in self.axe() if fault[1] in {"serious", "critical"}]
            assert faults == []
            wide = self.run("document.documentElement.scrollWidth")
            assert wide <= width, f"{wide} pixels in {width}"
            # What stands in the page itself is called a request as well.
            strange = [
                url[:80]
                for url in self.requests
                if url != path.as_uri() and not url.startswith("data:")
            ]
            assert not strange, strange

    def picture(self, path: Path, *, whole: bool = False) -> Path:
        """Save what is seen, or the whole page, as PNG."""
        answer = self.send("Page.captureScreenshot", format="png", captureBeyondViewport=whole)
        path.write_bytes(base64.b64decode(answer["data"]))
        return path

    def _receive(self) -> dict[str, Any]:
        while b"\0" not in self._left:
            ready, _, _ = select.select([self._in], [], [], _PATIENCE)
            assert ready, "the browser says nothing any more"
            more = os.read(self._in, 1 << 20)
            assert more, "the browser has gone"
            self._left += more
        line, _, self._left = self._left.partition(b"\0")
        message: dict[str, Any] = json.loads(line)
        params = message.get("params", {})
        match message.get("method"):
            case "Network.requestWillBeSent":
                self.requests.append(params["request"]["url"])
            case "Runtime.exceptionThrown":
                self.errors.append(json.dumps(params["exceptionDetails"]))
            case "Log.entryAdded" if params["entry"]["level"] == "error":
                self.errors.append(params["entry"]["text"])
        return message
