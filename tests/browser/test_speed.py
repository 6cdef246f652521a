"""How long a page of many events takes to open, to pan and to play, in the browser.

A busy machine makes all of it slow: so what is asserted is a generous ratio to what a
page of few events takes in the same browser. What it took is printed.
"""

import json
import sys
from pathlib import Path

import pytest

import gradviz as gv
from tests.browser.test_page import report

pytestmark = pytest.mark.stress

#: From the begin of the navigation to the first picture; see `performance.timeOrigin`.
OPENED = """
const [done] = arguments;
requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now())));
"""

#: How long each of some frames takes while the timeline is panned, in milliseconds.
PANNED = """
const [done] = arguments;
const took = [];
let before = performance.now();
const keys = ["w", "w", "w", ...Array(30).fill("d"), ...Array(30).fill("a")];
function frame(now) {
  took.push(now - before);
  before = now;
  const key = keys[took.length - 1];
  if (key === undefined) return done(took.slice(4));
  document.dispatchEvent(new KeyboardEvent("keydown", { key, bubbles: true }));
  requestAnimationFrame(frame);
}
requestAnimationFrame(frame);
"""


#: The same while a replay plays, which ends in the middle: 1,000 events a second.
PLAYED = """
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


def record(path: Path, num_layers: int) -> Path:
    kinds = (lambda: gv.nn.Linear(4, 4), gv.nn.Tanh) * num_layers
    model = gv.nn.Sequential(*(make() for make in kinds))
    x = gv.ones(2, 4, requires_grad=True)
    with gv.record(path):
        model(x).sum().backward()
    return path


def measure(window, page: Path) -> dict[str, float]:
    window.forget()
    window.open(page)
    window.wait_for('document.querySelector("#page h1")')
    opened_ms = window.driver.execute_async_script(OPENED)
    frames = sorted(window.driver.execute_async_script(PANNED))
    played = sorted(window.driver.execute_async_script(PLAYED))
    return {
        "opened_ms": round(opened_ms),
        "frame_ms": round(frames[len(frames) // 2], 1),
        "slow_frame_ms": round(frames[len(frames) * 95 // 100], 1),
        "played_ms": round(played[len(played) // 2], 1),
        "slow_played_ms": round(played[len(played) * 95 // 100], 1),
        "page_bytes": page.stat().st_size,
    }


def test_a_page_of_100_000_events_opens_and_pans(window, tmp_path, capsys):
    few = report(record(tmp_path / "few.gvt", 10), tmp_path / "few.html")
    trace = record(tmp_path / "many.gvt", 2_400)
    assert gv.load_trace(trace).num_events > 100_000
    many = report(trace, tmp_path / "many.html")

    measure(window, few)  # whatever a browser does only once
    small, large = measure(window, few), measure(window, many)
    with capsys.disabled():
        sys.stdout.write(f"\n{json.dumps({'few': small, 'many': large})}\n")
    assert large["opened_ms"] < 20 * small["opened_ms"] + 2_000
    assert large["frame_ms"] < 5 * small["frame_ms"] + 17
    assert large["played_ms"] < 5 * small["played_ms"] + 17
