"""Headless Chromium over its DevTools socket: what a page logs, asks for and shows."""

from __future__ import annotations

import base64
import json
import shutil
import subprocess
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Any

import websocket

NAMES = ("chromium", "chromium-browser", "google-chrome", "google-chrome-stable", "chrome")


def executable() -> str | None:
    """Path of a Chromium, or None."""
    return next((found for name in NAMES if (found := shutil.which(name))), None)


class Chrome:
    """One headless browser with one tab. Use as a context manager.

    Attributes:
        errors: console errors, exceptions and failed loads, as text.
        requests: URL of every request since `open`.
    """

    def __init__(self, *, width: int = 1440, height: int = 1000) -> None:
        found = executable()
        assert found is not None
        self.errors: list[str] = []
        self.requests: list[str] = []
        self._profile = tempfile.TemporaryDirectory(prefix="depthscope-chrome-", ignore_cleanup_errors=True)
        self._log = open(Path(self._profile.name) / "log", "wb")  # noqa: SIM115
        self._process = subprocess.Popen(
            [
                found,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-quic",
                "--no-first-run",
                "--disable-background-networking",
                "--disable-component-update",
                "--disable-sync",
                "--disable-dev-shm-usage",
                "--hide-scrollbars",
                "--remote-allow-origins=*",
                "--remote-debugging-port=0",
                f"--user-data-dir={self._profile.name}",
                "about:blank",
            ],
            stdout=self._log,
            stderr=self._log,
        )
        self._number = 0
        self._socket = websocket.create_connection(self._target(), timeout=60, max_size=None)
        for domain in ("Page", "Runtime", "Network", "Log"):
            self.call(f"{domain}.enable")
        self.resize(width, height)

    def __enter__(self) -> Chrome:
        return self

    def __exit__(self, *_: object) -> None:
        self._socket.close()
        self._process.terminate()
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
        self._log.close()
        self._profile.cleanup()

    def call(self, method: str, **params: Any) -> dict[str, Any]:
        """One DevTools command; events that arrive meanwhile are kept."""
        self._number += 1
        self._socket.send(json.dumps({"id": self._number, "method": method, "params": params}))
        while True:
            message = json.loads(self._socket.recv())
            if message.get("id") == self._number:
                if "error" in message:
                    raise RuntimeError(f"{method}: {message['error']}")
                result: dict[str, Any] = message["result"]
                return result
            self._event(message)

    def run(self, script: str) -> Any:
        """The value of a JavaScript expression; a promise is awaited."""
        found = self.call("Runtime.evaluate", expression=script, awaitPromise=True, returnByValue=True)
        if "exceptionDetails" in found:
            raise RuntimeError(str(found["exceptionDetails"].get("exception", {}).get("description")))
        return found["result"].get("value")

    def open(self, path: Path, *, timeout: float = 60) -> None:
        """Load a file and wait until its charts are drawn."""
        self.errors.clear()
        self.requests.clear()
        self.call("Page.navigate", url=path.resolve().as_uri())
        self.wait_for("document.documentElement?.dataset.ready === 'yes'", timeout=timeout)

    def wait_for(self, condition: str, *, timeout: float = 60) -> None:
        """Ask until a JavaScript condition holds."""
        end = time.monotonic() + timeout
        while not self.run(condition):
            if time.monotonic() > end:
                raise TimeoutError(f"{condition} did not come true; errors: {self.errors}")
            time.sleep(0.05)

    def resize(self, width: int, height: int, *, mobile: bool = False) -> None:
        """The size of the window, in CSS pixels."""
        self.call("Emulation.setDeviceMetricsOverride", width=width, height=height, deviceScaleFactor=1, mobile=mobile)

    def dark(self, on: bool) -> None:
        """Emulate the reader's preference for dark pages."""
        features = [{"name": "prefers-color-scheme", "value": "dark" if on else "light"}]
        self.call("Emulation.setEmulatedMedia", features=features)

    def screenshot(self, *, full: bool = True) -> bytes:
        """PNG of the page, or of the window alone."""
        params: dict[str, Any] = {"format": "png"}
        if full:
            size = self.call("Page.getLayoutMetrics")["cssContentSize"]
            params |= {"captureBeyondViewport": True, "clip": {"x": 0, "y": 0, "scale": 1, **_wh(size)}}
        return base64.b64decode(self.call("Page.captureScreenshot", **params)["data"])

    def pdf(self) -> bytes:
        """The page as it prints."""
        return base64.b64decode(self.call("Page.printToPDF", printBackground=True)["data"])

    def _event(self, message: dict[str, Any]) -> None:
        method, params = message.get("method"), message.get("params", {})
        if method == "Runtime.exceptionThrown":
            self.errors.append(str(params["exceptionDetails"].get("exception", params["exceptionDetails"])))
        elif method == "Runtime.consoleAPICalled" and params["type"] in ("error", "warning", "assert"):
            self.errors.append(" ".join(str(each.get("value", each.get("description"))) for each in params["args"]))
        elif method == "Log.entryAdded" and params["entry"]["level"] in ("error", "warning"):
            self.errors.append(params["entry"]["text"])
        elif method == "Network.requestWillBeSent":
            self.requests.append(params["request"]["url"])

    def _target(self) -> str:
        # Chromium writes the port it took into its profile once it listens.
        file = Path(self._profile.name) / "DevToolsActivePort"
        end = time.monotonic() + 60
        while not (file.exists() and file.read_text().strip()):
            if time.monotonic() > end or self._process.poll() is not None:
                raise TimeoutError("Chromium did not start.")
            time.sleep(0.05)
        port = int(file.read_text().split()[0])
        opener = urllib.request.build_opener(urllib.request.ProxyHandler({}))
        with opener.open(f"http://127.0.0.1:{port}/json/list", timeout=30) as answer:
            targets = json.load(answer)
        return str(next(each["webSocketDebuggerUrl"] for each in targets if each["type"] == "page"))


def _wh(size: dict[str, float]) -> dict[str, float]:
    return {"width": size["width"], "height": size["height"]}
