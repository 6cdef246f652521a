"""``gradviz view`` in a browser, as somebody would use it."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

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


@pytest.mark.parametrize("name", ["hostile", "benign"])
def test_texts_of_a_trace_stay_texts(view, traces, window, name):
    window.open(view(traces[name]))
    window.wait_for(IS_SHOWN)
    page = window.run("return location.href")
    for address in (page, page.replace("/trace/", "/passes/")):
        window.open(address)
        assert window.run("return window.hacked") is None
