"""How long pages of many events take in a browser: to open, to pan, to play.

In Chromium without a window and without a GPU, as fast as the processor draws, and
again as on one of a quarter of the speed.
"""

import shutil
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final, NamedTuple

from selenium import webdriver

import gradviz as gv
from gradviz.render.page.document import build_page, pack_page
from gradviz.render.page.html import write_page

#: A page of 100,000 events opens within this, draws that many frames a second, and at
#: each of them keeps the thread that does so busy no longer than that.
OPEN_S: Final = 2.0
FRAMES: Final = 60
BUSY_MS: Final = 8.0

#: Of a linear layer and its tanh, about.
EVENTS_OF_A_LAYER: Final = 32

#: So many events are looked at, and how many times slower the processor is made.
_CASES: Final = ((100_000, 1), (100_000, 4), (1_000_000, 1))

_ARGUMENTS: Final = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--window-size=1280,800",
)

#: From the begin of the navigation to the first picture; see `performance.timeOrigin`.
_OPENED: Final = """
const [done] = arguments;
requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
"""

#: How long each frame takes while the timeline is panned, in milliseconds.
_PANNED: Final = """
const [done] = arguments;
const took = [];
let before = performance.now();
// So close that it never comes to the end, where nothing would be drawn.
const keys = [...Array(8).fill("w"), ...Array(30).fill("d"), ...Array(30).fill("a")];
function frame(now) {
  took.push(now - before);
  before = now;
  const key = keys[took.length - 1];
  if (key === undefined) return done(took.slice(9));
  document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  requestAnimationFrame(frame);
}
requestAnimationFrame(frame);
"""

#: The same while a replay plays 1,000 events a second.
_PLAYED: Final = """
const [done] = arguments;
const took = [];
const speed = document.querySelector("#replay select");
speed.selectedIndex = [...speed.options].findIndex((one) => one.text === "1,000/s");
speed.dispatchEvent(new Event("change"));
const play = document.querySelector("#replay .play");
play.click();
let before = performance.now();
function frame(now) {
  took.push(now - before);
  before = now;
  if (took.length < 64) return requestAnimationFrame(frame);
  play.click();
  done(took.slice(4));
}
requestAnimationFrame(frame);
"""


class Frames(NamedTuple):
    """How long frames took, in milliseconds.

    Attributes:
        median: From one to the next.
        slow: The one than which one in twenty is slower.
        busy: How long the thread that makes them worked on one, on average: its own
            time, whatever else the machine was busy with.
    """

    median: float
    slow: float
    busy: float


class Measured(NamedTuple):
    """What a page took.

    Attributes:
        opened_ms: Until its first picture.
        panned: While the timeline is panned.
        played: While a replay plays.
    """

    opened_ms: float
    panned: Frames
    played: Frames


class PageRow(NamedTuple):
    """One page.

    Attributes:
        num_events: How many it has.
        size_bytes: How large its file is.
        slower: How many times slower the processor was made.
        measured: What it took.
    """

    num_events: int
    size_bytes: int
    slower: int
    measured: Measured


def pages() -> Iterator[PageRow]:
    """The rows, as they come; none where Chromium is not there."""
    program, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if program is None or driver is None:
        return
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in _ARGUMENTS:
        options.add_argument(argument)
    service = webdriver.ChromeService(executable_path=driver)
    chrome = webdriver.Chrome(options=options, service=service)
    try:
        with tempfile.TemporaryDirectory() as folder:
            for num_events, slower in _CASES:
                page = Path(folder, f"{num_events}.html")
                if not page.exists():
                    write_report(page, num_events // EVENTS_OF_A_LAYER)
                chrome.execute_cdp_cmd(
                    "Emulation.setCPUThrottlingRate", {"rate": slower}
                )
                measure(chrome, page)  # whatever a browser does only once
                measured = measure(chrome, page)
                yield PageRow(num_events, page.stat().st_size, slower, measured)
    finally:
        chrome.quit()


def write_report(path: Path, num_layers: int) -> int:
    """The page of a deep model's backward; how many events it has."""
    kinds = (lambda: gv.nn.Linear(4, 4), gv.nn.Tanh) * num_layers
    model = gv.nn.Sequential(*(make() for make in kinds))
    x = gv.ones(2, 4, requires_grad=True)
    with gv.record() as recording:
        model(x).sum().backward()
    trace = recording.trace
    page = build_page(trace, trace.tasks)
    path.write_bytes(write_page(pack_page(page), "many events"))
    return trace.num_events


def measure(chrome: webdriver.Chrome, page: Path) -> Measured:
    """Open a page, pan it and play it."""
    chrome.set_script_timeout(120)
    chrome.get("about:blank")
    chrome.get(page.as_uri())
    while not chrome.execute_script("return !!document.querySelector('#page h1')"):
        pass
    chrome.execute_cdp_cmd("Performance.enable", {"timeDomain": "threadTicks"})
    return Measured(
        opened_ms=chrome.execute_async_script(_OPENED),
        panned=_frames(chrome, _PANNED),
        played=_frames(chrome, _PLAYED),
    )


def _frames(chrome: webdriver.Chrome, script: str) -> Frames:
    begin = _busy_s(chrome)
    took: list[float] = chrome.execute_async_script(script)
    busy_ms = (_busy_s(chrome) - begin) / len(took) * 1e3
    in_order = sorted(took)
    median, slow = in_order[len(took) // 2], in_order[len(took) * 95 // 100]
    return Frames(median, slow, busy_ms)


def _busy_s(chrome: webdriver.Chrome) -> float:
    told: dict[str, Any] = chrome.execute_cdp_cmd("Performance.getMetrics", {})
    (busy,) = (one["value"] for one in told["metrics"] if one["name"] == "TaskDuration")
    return float(busy)
