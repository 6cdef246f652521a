"""``gradviz view`` in a browser, as somebody would use it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest
from selenium.webdriver import Keys

from tests.analysis.conftest import Story
from tests.view.conftest import tell_passes, unclosed

pytestmark = pytest.mark.stress

#: The page has read its data and shows something of it.
IS_SHOWN = 'document.querySelector("#page h1")'

BAR = 'document.querySelector("#bar")?.innerText'


@pytest.fixture
def view():
    """Starts the server of a trace and gives its address."""
    started: list[subprocess.Popen[str]] = []

    def start(place: Path) -> str:
        words = [sys.executable, "-m", "gradviz", "view", "--no-open", str(place)]
        started.append(subprocess.Popen(words, stderr=subprocess.PIPE, text=True))
        return re.search(r"http://\S+", started[-1].stderr.readline())[0]

    yield start
    for one in started:
        one.kill()
        one.communicate()


def test_the_address_leads_to_a_page_that_works(view, traces, window):
    window.open(view(traces["benign"]))

    window.wait_for(IS_SHOWN)
    assert window.run("return location.search") == ""
    assert window.run("return document.cookie") == ""  # no script can read it


def test_without_the_token_there_is_nothing(view, traces, window):
    address = view(traces["benign"])
    window.open(address.partition("?")[0])

    assert "open the address" in window.run("return document.body.innerText")
    window.complaints()  # a browser tells of a 403


def test_a_page_of_another_site_gets_nothing(view, traces, window):
    address = view(traces["benign"])
    window.open(address)
    window.wait_for(IS_SHOWN)  # so the browser has the cookie
    other = view(traces["benign"].parent)
    window.open(other)

    told = window.driver.execute_async_script(
        """const [address, done] = arguments;
        fetch(address, { credentials: "include" })
          .then(() => done("read"), () => done("not"));""",
        address.partition("?")[0],
    )
    assert told == "not"
    window.complaints()  # it tells of that too


def test_from_pass_to_pass(view, tmp_path, window):
    path = tmp_path / "three.gvt"
    path.write_bytes(tell_passes(3))
    window.open(view(path))
    bar = 'document.querySelector("#bar").innerText'

    window.wait_for(f'{bar}.includes("pass 2")')
    window.click("#bar a", "previous")
    window.wait_for(f'{bar}.includes("pass 1")')
    window.wait_for(IS_SHOWN)
    window.click("#bar a", "all 3 passes")
    window.wait_for('document.querySelectorAll("tbody tr").length === 3')
    window.click("td a", "0")
    window.wait_for(f"{bar}.includes('pass 0')")
    window.wait_for(IS_SHOWN)


def test_a_page_follows_a_recording_in_place(view, tmp_path, window):
    path = tmp_path / "live.gvt"
    path.write_bytes(unclosed(tell_passes(0)))
    window.open(view(path))
    window.wait_for('document.body.innerText.includes("waits for the first")')
    path.write_bytes(unclosed(tell_passes(1, name="Same")))
    window.wait_for(IS_SHOWN)
    window.run(
        """window.isHere = true;
        location.hash = "#node=0&from_ns=5&until_ns=60";
        document.querySelector(".column.times").style.flexGrow = 3;"""
    )

    path.write_bytes(unclosed(tell_passes(2, name="Same")))
    window.wait_for(f'{BAR}.includes("pass 1")')
    window.wait_for(
        'document.querySelector("#story").innerText.includes("id 1 of pass 1")'
    )
    assert window.run("return window.isHere")  # it was not loaded anew
    assert "until_ns=60" in window.run("return location.hash")
    assert window.run('return document.querySelector(".times").style.flexGrow') == "3"

    path.write_bytes(tell_passes(3, name="Same"))
    window.wait_for(f'{BAR}.includes("pass 2")')
    assert window.run('return document.querySelector("#live")') is None
    window.press("?")  # one program hears of keys, not one for each time
    window.wait_for('document.querySelectorAll("dialog[open]").length === 1')


def tell_many_lanes(num_passes: int) -> bytes:
    """A recording that goes on: alike passes, with more lanes than a window shows."""
    story = Story()
    for task in range(num_passes):
        at, first = 10_000 * task, 20 * task
        nodes = [story.node(first + place, name="Same") for place in range(8)]
        story.begin(task, nodes, at=at)
        for place, node in enumerate(nodes):
            begin = at + 100 * place + 10
            ran = begin + 60, begin + 90
            story.take(task, node, at=(begin, begin + 10, begin + 20), queue=place)
            story.kernel(first + place, f"stream {place}", at=begin + 30, ran=ran)
            story.complete(task, node, at=begin + 50)
        story.end(task, at=at + 1_000)
    return unclosed(story.contents())


#: Tells of what a frame has shown: a picture that nobody has drawn has the size with
#: which each begins. Only those count that were there before the frame.
WATCH_FOR_EMPTY_PICTURES = """
window.empty = [];
let before = [];
function watch() {
  const isEmpty = (one) => one.isConnected && one.width === 300 && one.height === 150;
  window.empty.push(...before.filter(isEmpty).map((one) => one.ariaLabel));
  before = [...document.querySelectorAll("canvas")].filter((one) => one.clientHeight);
  requestAnimationFrame(watch);
}
watch();
"""

#: What the pictures show: all of a pass, as the reader looks at it.
PICTURES = """
return Array.from(document.querySelectorAll("canvas"), (one) => one.toDataURL());
"""


def test_a_page_that_grows_leaves_all_as_the_reader_has_it(view, tmp_path, window):
    path = tmp_path / "live.gvt"
    path.write_bytes(tell_many_lanes(1))
    window.open(view(path))
    window.wait_for(IS_SHOWN)
    window.run(
        """window.isHere = true;
        location.hash = "#node=0&until_ns=250";
        const set = (selector, type, value) => {
          const one = document.querySelector(selector);
          one.value = value;
          one.dispatchEvent(new Event(type));
        };
        set("#search input", "input", "kernel");
        set("#replay select", "change", "7");"""
    )
    for panel in ("queues", "timeline"):
        window.run(f"document.querySelector('#{panel} .picture canvas').focus()")
        window.press(Keys.ARROW_DOWN)
    window.press(*"dddddd")  # to where the selected node is not
    window.run("document.querySelector('#graph .picture canvas').focus()")
    window.press("+", Keys.ARROW_DOWN)
    window.wait_for("/from_ns/.test(location.hash)")
    window.run(WATCH_FOR_EMPTY_PICTURES)
    pictures = window.run(PICTURES)

    path.write_bytes(tell_many_lanes(2))
    window.wait_for(f'{BAR}.includes("pass 1")')
    window.wait_for('document.querySelector("#story").innerText.includes("of pass 1")')
    kept = """[document.activeElement.ariaLabel,
      document.querySelector("#search input").value,
      document.querySelector("#replay select").value]"""
    assert window.run(f"return {kept}") == ["Graph of the backward pass", "kernel", "7"]
    assert window.run(PICTURES) == pictures
    assert window.run("return window.empty") == []
    assert window.run("return window.isHere")


def test_fingers_hit_every_link_above_a_narrow_page(view, tmp_path, window):
    path = tmp_path / "live.gvt"
    path.write_bytes(unclosed(tell_passes(3)))
    window.open(view(path))
    window.wait_for(IS_SHOWN)
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    window.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)

    small = window.run(
        """return [...document.querySelectorAll("#bar a, #bar label")]
          .map((one) => [one.innerText, one.getBoundingClientRect()])
          .filter(([, { width, height }]) => width < 44 || height < 44)
          .map(([text]) => text);"""
    )
    wide = window.run("return document.documentElement.scrollWidth")
    window.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert (small, wide) == ([], 390)


def test_a_page_that_does_not_follow_reports_that_more_was_recorded(
    view, tmp_path, window
):
    path = tmp_path / "live.gvt"
    path.write_bytes(unclosed(tell_passes(1)))
    window.open(view(path))
    window.wait_for(IS_SHOWN)
    window.click("#follow")

    path.write_bytes(unclosed(tell_passes(2)))
    window.wait_for(f'{BAR}.includes("more has been recorded")')
    assert "pass 0" in window.run(f"return {BAR}")
    window.click("#follow")
    window.wait_for(f'{BAR}.includes("pass 1")')


def test_a_page_does_not_change_under_the_hands_of_who_drags(view, tmp_path, window):
    path = tmp_path / "live.gvt"
    path.write_bytes(unclosed(tell_passes(1)))
    window.open(view(path))
    window.wait_for(IS_SHOWN)
    press = "document.dispatchEvent(new PointerEvent(arguments[0], arguments[1]))"
    window.run(press, "pointerdown", {"buttons": 1})

    path.write_bytes(unclosed(tell_passes(2)))
    window.wait_for(f'{BAR}.includes("more has been recorded")')
    assert "pass 0" in window.run(f"return {BAR}")
    window.run(press, "pointerup", {"buttons": 0})
    window.wait_for(f'{BAR}.includes("pass 1")')


@pytest.mark.parametrize("name", ["hostile", "benign"])
def test_texts_of_a_trace_stay_texts(view, traces, window, name):
    window.open(view(traces[name]))
    window.wait_for(IS_SHOWN)
    page = window.run("return location.href")
    for address in (page, page.replace("/trace/", "/passes/")):
        window.open(address)
        assert window.run("return window.hacked") is None
