"""The page of ``gradviz render report``, as somebody would use it."""

import base64
import re
from itertools import pairwise
from pathlib import Path
from xml.etree import ElementTree as ET

import pytest
from click.testing import CliRunner
from selenium.webdriver import Keys

from gradviz.cli.main import gradviz
from tests.analysis.conftest import Story

pytestmark = pytest.mark.stress

ROOT = Path(__file__).parents[2]
AXE = ROOT / "node_modules" / "axe-core" / "axe.min.js"

#: What a panel is called, and whether it draws.
PANELS = {
    "timeline": True,
    "queues": True,
    "memory": True,
    "graph": True,
    "now": False,
    "story": False,
}

#: A fingerprint of what a canvas shows, and how much of it is not blank.
SEEN = """
const canvas = document.querySelector(arguments[0]);
const { width, height } = canvas;
const copy = new OffscreenCanvas(width, height);
const context = copy.getContext("2d", { willReadFrequently: true });
context.drawImage(canvas, 0, 0);
const { data } = context.getImageData(0, 0, width, height);
let inked = 0, print = 0;
for (let at = 0; at < data.length; at += 4) {
  if (data[at + 3]) inked++;
  print = (Math.imul(print, 31) + data[at] + 3 * data[at + 1] + 7 * data[at + 2]) | 0;
}
return [print, inked / (width * height)];
"""

#: All that a key can do something with, by what it is.
REACHABLE = """
return Array.from(document.querySelectorAll(
  'button, input, select, a[href], summary, [tabindex="0"]'
)).filter((one) => one.checkVisibility() && !one.disabled && one.tabIndex >= 0).length;
"""


def report(trace: Path, output: Path, *options: str) -> Path:
    words = ["render", "report", "-f", "-o", str(output), *options, str(trace)]
    done = CliRunner().invoke(gradviz, words)
    assert done.exit_code == 0, done.stderr
    return output


@pytest.fixture(scope="session")
def pages(traces, tmp_path_factory) -> dict[str, Path]:
    """The page of each trace."""
    folder = tmp_path_factory.mktemp("pages")
    return {
        name: report(path, folder / f"{name}.html") for name, path in traces.items()
    }


@pytest.fixture
def page(window, pages):
    """A page that is open and has drawn."""
    return open_page(window, pages["recorded"])


def open_page(window, path, hash_=""):
    window.open(path.as_uri() + hash_)
    return window


def settle(window) -> None:
    """Wait until what was changed has been drawn."""
    window.driver.execute_async_script(
        "const [done] = arguments;"
        "requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done)));"
    )


def pictures(window) -> dict[str, int]:
    """Return the contents of each panel that draws."""
    settle(window)
    return {
        name: window.run(SEEN, f"#{name} .picture canvas")[0]
        for name, draws in PANELS.items()
        if draws
    }


#: The page writes its address with such a timer after a change. One that is made later
#: ends later: what stands there then is what was done before.
TOLD = """
const [done] = arguments;
requestAnimationFrame(() => requestAnimationFrame(() => setTimeout(done, 251)));
"""


def state(window) -> dict[str, str]:
    """Return the fields of the address."""
    window.driver.execute_async_script(TOLD)
    return dict(re.findall(r"[#&]([\w.]+)=([^&]*)", window.run("return location.hash")))


def text_of(window, selector: str) -> str:
    return window.run("return document.querySelector(arguments[0]).innerText", selector)


# --- what one sees ----------------------------------------------------------------


@pytest.mark.parametrize("name", PANELS)
def test_a_panel_is_there_and_large_enough(page, name):
    width, height = page.run(
        "const box = document.getElementById(arguments[0]).getBoundingClientRect();"
        "return [box.width, box.height];",
        name,
    )
    assert width > 200
    assert height > 90


@pytest.mark.parametrize("name", [name for name, draws in PANELS.items() if draws])
def test_a_picture_is_not_blank(page, name):
    page.wait_for(f'document.querySelector("#{name} .picture canvas")')
    settle(page)

    _, inked = page.run(SEEN, f"#{name} .picture canvas")
    assert inked > 0.01


def test_the_page_fits_the_window(page):
    assert page.run("return document.documentElement.scrollHeight <= innerHeight")
    assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    assert page.ink().share > 0.05


@pytest.mark.parametrize("width", [400, 820, 2200])
def test_it_fits_windows_of_any_width(page, width):
    page.driver.set_window_size(width, 800)
    try:
        settle(page)
        assert page.run("return document.documentElement.scrollWidth <= innerWidth")
    finally:
        page.driver.set_window_size(1280, 800)


def test_it_asks_nobody_for_anything(page):
    assert page.loaded() == []


# --- what is selected is selected everywhere ---------------------------------------


def test_a_node_is_selected_in_all_panels(page):
    before = pictures(page)

    page.press("k", "k")
    after = pictures(page)
    node = state(page)["node"]
    assert before["timeline"] != after["timeline"]
    assert before["graph"] != after["graph"]
    assert node in text_of(page, "#story")
    assert node in text_of(page, "#replay .told")


def test_a_click_in_the_timeline_selects_a_node(page):
    page.press("k")
    settle(page)
    chosen = state(page)["node"]
    page.press(Keys.ESCAPE)
    page.wait_for('!location.hash.includes("node=")')

    for x in range(160, 800, 4):  # a busy machine records narrow nodes
        page.click_at("#timeline canvas", x, 40)
        settle(page)
        if page.run("return document.querySelector('#story h3')"):
            break
    page.wait_for('location.hash.includes("node=")')  # told a while later
    assert int(state(page)["node"]) >= 0
    assert chosen


def test_an_address_shows_what_was_selected(window, pages):
    open_page(window, pages["recorded"], "#node=2&moment=20")

    assert "event 21 of" in text_of(window, "#replay .told")


@pytest.mark.parametrize(
    "hash_",
    [
        "#node=999999&moment=999999999",
        "#node=-7&moment=-9&task=55",
        "#from_ns=5&until_ns=1",
        "#depth=99&panel=__proto__&theme=%3Cscript%3E",
        "#node=1e9&__proto__=1&constructor=2",
        "#%",
    ],
)
def test_an_address_that_makes_no_sense_harms_nothing(window, pages, hash_):
    open_page(window, pages["recorded"], hash_)

    window.press("k", ".", ".")
    settle(window)
    assert "event" in text_of(window, "#replay .told")


def test_search_finds_and_selects(page):
    page.press("/", *"Tanh")
    page.wait_for('document.querySelectorAll("#found [role=option]").length === 1')
    assert "Tanh" in text_of(page, "#found")
    before = pictures(page)

    page.press(Keys.ENTER)
    page.wait_for(
        'document.querySelector("#story").innerText.includes("TanhBackward0")'
    )
    page.wait_for('location.hash.includes("filter.text")')
    assert state(page)["filter.text"] == "Tanh"
    assert before["graph"] != pictures(page)["graph"]


def test_search_for_what_is_not_there_says_so(page):
    page.press("/", *"<b>no</b>")

    page.wait_for(
        'document.querySelector("#found").innerText === "nothing is called so"'
    )


# --- replay -----------------------------------------------------------------------


def test_a_replay_goes_forward_and_back_event_by_event(page):
    told = 'document.querySelector("#replay .told").innerText'

    page.press(Keys.HOME)
    page.wait_for(f'{told}.startsWith("event 1 of")')
    page.press(".", ".", ".")
    page.wait_for(f'{told}.startsWith("event 4 of")')
    page.press(",")
    page.wait_for(f'{told}.startsWith("event 3 of")')
    assert state(page)["moment"] == "2"


@pytest.mark.parametrize("wide", [390, 1440])
def test_a_long_name_of_a_queue_is_there_as_a_whole(window, tmp_path, wide):
    story, name = Story(), f"<b>queue</b> {100 * 'x'}"
    story.recorder.queue_defined(1, name, 0)
    node = story.node(0)
    story.begin(0, [node], at=0)
    story.take(0, node, at=(10, 20, 30), until=40)
    story.end(0, at=50)
    trace = tmp_path / "long.gvt"
    trace.write_bytes(story.contents())
    size = {"width": wide, "height": 900, "deviceScaleFactor": 1, "mobile": False}
    window.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    page = report(trace, tmp_path / "long.html")
    open_page(window, page, "#moment=2&panel=queues")

    window.click_at("#queues .picture canvas", 20, 40)
    tip = "document.querySelector('.tooltip')?.innerText"
    window.wait_for(f"{tip}?.includes(arguments[0])", name)
    window.run('location.hash = "#moment=2&panel=now"')
    window.wait_for("document.querySelector('#now').clientWidth")
    overflow = """const { scrollWidth, clientWidth } = document.querySelector("#now");
      return [document.documentElement.scrollWidth, scrollWidth - clientWidth];"""
    told = window.run(overflow), text_of(window, "#now")
    window.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})
    assert told[0] == [wide, 0]
    assert name in told[1]


def test_a_replay_shows_queues_threads_and_countdowns(page):
    page.press(Keys.HOME)
    seen = set()
    for _ in range(40):
        page.press(".")
        settle(page)
        seen.add(text_of(page, "#now"))

    assert len(seen) > 10
    assert any("1 task" in one for one in seen)
    assert any("runs" in one for one in seen)


def test_a_replay_plays_to_the_end(page):
    page.press("]", "]", "]", "]", "]", " ")

    page.wait_for(
        "/^event ([\\d,]+) of \\1 /.test("
        'document.querySelector("#replay .told").innerText)'
    )


def test_a_replay_moves_a_line_over_pictures_that_stay(page):
    """They are not drawn anew for each event."""
    page.press(Keys.HOME)
    before = pictures(page)
    place = "return document.querySelector('#timeline .cursor').style.transform"
    begin = page.run(place)

    page.press(Keys.END)
    after = pictures(page)
    assert page.run(place) != begin
    for name in ("timeline", "queues", "memory"):
        assert after[name] == before[name]


# --- fingers ----------------------------------------------------------------------


def span(page) -> tuple[float, float]:
    """Return the times in the address."""
    said = state(page)
    return float(said["from_ns"]), float(said["until_ns"])


def test_two_fingers_look_closer_and_one_moves_what_is_seen(page):
    page.touch(
        "#timeline canvas",
        [(300, 80), (500, 80)],
        [(250, 80), (550, 80)],
        [(200, 80), (600, 80)],
    )
    page.wait_for('location.hash.includes("from_ns")')
    begin, end = span(page)

    page.touch("#timeline canvas", [(500, 80)], [(450, 80)], [(400, 80)])
    page.wait_for(f"!location.hash.includes('from_ns={begin:.0f}&')")
    moved, until = span(page)
    assert moved > begin
    assert until - moved == pytest.approx(end - begin, abs=2)  # both are rounded


# --- hands off the mouse -----------------------------------------------------------


def test_every_control_is_reached_by_the_tab_key(page):
    number = page.run(REACHABLE)
    page.run(
        "window.reached = new Set(); document.addEventListener('focusin', "
        "(event) => window.reached.add(event.target));"
    )

    page.press(*[Keys.TAB] * (number + 5))
    assert number > 10
    assert page.run("return window.reached.size") >= number


def test_help_opens_and_closes(page):
    page.press("?")
    page.wait_for('document.querySelector("dialog").open')
    page.press(Keys.ESCAPE)
    page.wait_for('!document.querySelector("dialog").open')


@pytest.mark.parametrize(("key", "other"), [("w", "s"), ("w", "0")])
def test_keys_look_closer_and_farther(page, key, other):
    before = pictures(page)

    page.press(key, key)
    closer = pictures(page)
    page.press(other, other)
    assert before["timeline"] != closer["timeline"]
    assert before["queues"] != closer["queues"]
    page.wait_for('!location.hash.includes("from_ns")')


def test_room_that_was_given_to_a_panel_is_there_on_the_next_page(window, pages):
    tall = "return document.querySelector('[data-panel=timeline]').offsetHeight"
    open_page(window, pages["recorded"])
    before = window.run(tall)

    window.run("document.querySelector('.times .splitter').focus()")
    window.press(Keys.ARROW_UP, Keys.ARROW_UP, Keys.ARROW_UP)
    given = window.run(tall)
    assert given < before - 50
    open_page(window, pages["recorded"])
    kept = window.run(tall)
    window.run("localStorage.clear()")
    assert kept == pytest.approx(given, abs=1)


def test_light_becomes_dark(page):
    ground = "getComputedStyle(document.body).backgroundColor"
    before = page.run(f"return {ground}")

    page.press("t")
    page.wait_for(f"{ground} !== arguments[0]", before)


@pytest.mark.skipif(not AXE.exists(), reason="axe-core is not here: npm ci installs it")
@pytest.mark.parametrize("hash_", ["", "#node=2&moment=20", "#theme=dark&node=2"])
def test_nothing_keeps_anybody_from_using_it(window, pages, hash_):
    open_page(window, pages["recorded"], hash_)
    window.run(AXE.read_text())

    found = window.driver.execute_async_script(
        "const [done] = arguments; axe.run().then((found) => done(found.violations));"
    )
    serious = [
        (one["id"], one["help"], [node["html"] for node in one["nodes"]][:3])
        for one in found
        if one["impact"] in ("serious", "critical")
    ]
    assert serious == []


# --- graph, search, story ---------------------------------------------------------


def test_a_search_selects_and_explains_the_node_it_finds(page):
    page.press("/", "tanh")
    page.wait_for('!document.querySelector("#found").hidden')
    page.press(Keys.ENTER)

    page.wait_for('document.querySelector("#story h3")')
    assert "node" in state(page)
    assert text_of(page, "#story h3").lower().startswith("tanh")
    assert "It ran on thread" in text_of(page, "#story .explanation")


def test_a_search_dims_nodes_without_a_match_until_it_is_left(page):
    before = pictures(page)["graph"]

    page.press("/", "tanh")
    assert pictures(page)["graph"] != before
    page.press(Keys.ESCAPE)
    assert pictures(page)["graph"] == before


def test_a_search_for_what_is_not_there_says_so(page):
    page.press("/", "no such node")

    page.wait_for('document.querySelector("#found").innerText.includes("nothing")')


def test_keys_move_the_graph_that_has_the_focus_and_zero_fits_it_again(page):
    page.run('document.querySelector("#graph .picture canvas").focus()')
    page.press("0")
    before = pictures(page)

    page.press(Keys.ARROW_DOWN, "+")
    moved = pictures(page)
    page.press("0")
    assert moved["graph"] != before["graph"]
    assert moved["timeline"] == before["timeline"]
    assert pictures(page)["graph"] == before["graph"]


def test_a_node_named_in_an_explanation_is_selected_by_a_click(window, pages):
    open_page(window, pages["recorded"], "#node=2")
    window.wait_for('document.querySelector("#story .link")')
    before = text_of(window, "#story h3")

    window.click("#story .link")
    window.wait_for(
        'document.querySelector("#story h3").innerText !== arguments[0]', before
    )


def test_the_selected_node_says_what_has_become_of_it_at_a_moment(window, pages):
    open_page(window, pages["recorded"], "#node=2&moment=0")
    window.wait_for('document.querySelector("#story h3")')
    assert "At this moment: not reached yet." in text_of(window, "#story")

    window.press(Keys.END)
    window.wait_for(
        'document.querySelector("#story").innerText.includes("moment: completed.")'
    )


def test_a_moment_of_a_replay_is_seen_in_the_graph(page):
    before = pictures(page)["graph"]

    page.press(Keys.HOME, *"." * 12)
    assert pictures(page)["graph"] != before


# --- boxes that open --------------------------------------------------------------


def focus_graph(page) -> None:
    page.run('document.querySelector("#graph .picture canvas").focus()')


def opened(page) -> str:
    """Return the graph's text on how much of it is open."""
    settle(page)
    return page.run(
        "const one = document.querySelector('#graph [aria-label^=\"How much\"]');"
        "return one.selectedOptions[0].text;"
    )


def test_keys_collapse_all_and_expand_all_and_the_address_keeps_it(window, pages):
    open_page(window, pages["recorded"])
    focus_graph(window)
    window.press("c")
    collapsed, picture = opened(window), pictures(window)["graph"]
    window.press("e")

    assert collapsed.startswith("all closed")
    assert opened(window).startswith("all open")
    assert picture != pictures(window)["graph"]
    window.wait_for(r"/[#&]open=\d/.test(location.hash)")  # not that of the collapse
    hash_ = window.run("return location.hash")
    window.open("about:blank")
    open_page(window, pages["recorded"], hash_)
    assert opened(window).startswith("all open")


def test_a_click_on_a_title_closes_a_box_and_a_double_click_opens_it(page):
    focus_graph(page)
    page.press("e", "0")
    whole = opened(page)

    wide, high = page.run(
        "const one = document.querySelector('#graph .picture canvas');"
        "return [one.clientWidth, one.clientHeight];"
    )
    for y in range(2, high, 4):
        page.click_at("#graph .picture canvas", wide / 2, y)
        if opened(page) != whole:
            break
    assert opened(page) != whole
    page.double_click_at("#graph .picture canvas", wide / 2, y + 3)
    assert opened(page) == whole


def test_colors_of_the_graph_are_chosen_and_explained(page):
    before, legend = pictures(page)["graph"], text_of(page, "#graph .legend")

    page.run(
        "const one = document.querySelector('#graph [aria-label^=\"What colors\"]');"
        "one.value = 'time'; one.dispatchEvent(new Event('change'));"
    )
    settle(page)
    assert text_of(page, "#graph .legend") != legend
    assert pictures(page)["graph"] != before
    assert state(page)["color"] == "time"


# --- paper ------------------------------------------------------------------------

#: What a button would have the browser save, as base64.
SAVED = """
const [selector, done] = arguments, original = URL.createObjectURL;
URL.createObjectURL = (blob) => {
  URL.createObjectURL = original;
  const reader = new FileReader();
  reader.onload = () => done(reader.result.split(",")[1]);
  reader.readAsDataURL(blob);
  return original.call(URL, blob);
};
document.querySelector(selector).click();
"""


def saved(page, panel: str, kind: str) -> bytes:
    """Return the picture of this kind that a panel saves."""
    selector = f'[data-panel="{panel}"] [aria-label$="as {kind}"]'
    return base64.b64decode(page.driver.execute_async_script(SAVED, selector))


@pytest.mark.parametrize("name", [name for name, draws in PANELS.items() if draws])
def test_a_panel_is_saved_as_a_picture(page, name):
    settle(page)
    svg = ET.fromstring(saved(page, name, "SVG"))
    png = saved(page, name, "PNG")

    assert {one.tag.split("}")[1] for one in svg.iter()} <= {
        *("svg", "defs", "clipPath", "pattern", "path", "text"),
    }
    texts = [one.text for one in svg.iter() if one.tag.endswith("text")]
    assert any("Tanh" in one for one in texts) == (name == "graph")
    assert float(svg.get("width")) > 400
    assert png.startswith(b"\x89PNG")


def test_a_saved_graph_has_all_boxes_whatever_is_seen(page):
    page.run('document.querySelector("#graph .picture canvas").focus()')
    page.press("e", "0")
    settle(page)
    before = saved(page, "graph", "SVG")

    page.press("+", "+", "+", Keys.ARROW_RIGHT, Keys.ARROW_RIGHT)
    settle(page)
    assert re.sub(b"p[0-9]+-", b"", saved(page, "graph", "SVG")) == re.sub(
        b"p[0-9]+-", b"", before
    )


def test_paper_has_all_of_a_picture_in_pieces_as_large_as_a_sheet(window, tmp_path):
    trace = ROOT / "docs" / "gallery" / "rnn.gvt"
    open_page(window, report(trace, tmp_path / "page.html"))
    window.run('document.querySelector("#graph .picture canvas").focus()')
    window.press("e")
    settle(window)

    window.run("window.dispatchEvent(new Event('beforeprint'))")
    sheets = window.run(
        """return Object.fromEntries(
        [...document.querySelectorAll(".panel:has(.sheets)")].map((panel) => [
          panel.dataset.panel,
          [...panel.querySelectorAll("svg")].map((one) => one.getAttribute("viewBox")),
        ]))"""
    )
    window.run("window.dispatchEvent(new Event('afterprint'))")
    assert {*sheets} == {"timeline", "queues", "memory", "graph"}
    assert len(sheets["graph"]) > 1
    boxes = [[float(one) for one in sheet.split()] for sheet in sheets["graph"]]
    for (_, top, _, high), (_, begin, _, _) in pairwise(boxes):
        assert top + high == pytest.approx(begin, abs=0.02)  # nothing is left out
    assert window.run('return document.querySelector(".sheets")') is None


# --- where things are ----------------------------------------------------------------


def rectangle(page, selector: str) -> tuple[float, float, float, float]:
    """Left, top, right and bottom of an element."""
    return tuple(
        page.run(
            "const one = document.querySelector(arguments[0]).getBoundingClientRect();"
            "return [one.left, one.top, one.right, one.bottom];",
            selector,
        )
    )


def test_the_map_of_a_graph_covers_nothing_of_it(page):
    page.run('document.querySelector("#graph .picture canvas").focus()')
    page.press("e", "+", "+", "+")
    settle(page)

    left, _top, _right, bottom = rectangle(page, ".minimap")
    assert left > 0  # it is there
    assert bottom <= rectangle(page, "#graph .picture")[1]


def test_a_timeline_of_one_lane_leaves_its_room_to_the_others(window, tmp_path):
    trace = ROOT / "docs" / "gallery" / "mlp.gvt"
    page = open_page(window, report(trace, tmp_path / "page.html"))
    settle(page)

    _, top, _, bottom = rectangle(page, "#timeline canvas")
    assert bottom - top < 120
    _, begin, _, end = rectangle(page, ".column.times")
    assert end - begin > 500
    assert rectangle(page, "[data-panel=memory]")[3] == pytest.approx(end, abs=1)


@pytest.fixture
def phone(page):
    """The page on a narrow screen that fingers touch."""
    size = {"width": 390, "height": 844, "deviceScaleFactor": 1, "mobile": True}
    page.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", size)
    settle(page)
    yield page
    page.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})


@pytest.mark.parametrize("panel", PANELS)
def test_fingers_hit_every_control_of_a_narrow_screen(phone, panel):
    phone.run(f"location.hash = '#node=2&moment=20&panel={panel}'")
    phone.wait_for(f'document.querySelector("[data-panel={panel}].chosen")')
    settle(phone)

    small = phone.run(
        """const touched = "button, select, input:not([type=checkbox]), label, a[href]";
        return [...document.querySelectorAll(touched)]
          .filter((one) => one.checkVisibility() && !one.closest(".explanation"))
          .map((one) => [one.outerHTML.slice(0, 90), one.getBoundingClientRect()])
          .filter(([, { width, height }]) => width < 44 || height < 44)
          .map(([one]) => one);"""
    )
    assert small == []
    assert phone.run("return document.documentElement.scrollWidth") <= 390


# --- texts that want to be more ------------------------------------------------------


def test_no_text_of_a_trace_becomes_an_element(window, pages):
    def shown(name: str):
        open_page(window, pages[name])
        window.press("k", "k", Keys.HOME, *"." * 30)
        settle(window)
        assert window.run("return window.hacked") is None
        return window.elements()

    assert shown("hostile") == shown("benign")
    assert window.loaded() == []


@pytest.mark.parametrize("name", ["bare", "empty"])
def test_no_text_is_an_error_or_runs(window, pages, name):
    open_page(window, pages[name])

    window.press("k", ".", ".")
    settle(window)
    assert window.run("return window.hacked") is None
    assert window.run("return document.querySelector('[role=alert]')") is None


def test_parts_of_a_pass_say_whose_they_are_where_there_are_several_workers(
    window, tmp_path
):
    trace = ROOT / "docs" / "gallery" / "pipeline.gvt"
    open_page(window, report(trace, tmp_path / "page.html"))
    settle(window)

    options = window.run(
        'return Array.from(document.querySelectorAll("option")).map((one) => one.text)'
    )

    called = [one for one in options if re.match(r"pass \d", one)]
    assert called == [f"pass 21 on worker {one}" for one in range(3)]
