"""Actions of tests on a page, and their view of it."""

from pathlib import Path
from typing import Any, Final, NamedTuple

from selenium.webdriver import ActionChains, Chrome
from selenium.webdriver.support.wait import WebDriverWait

#: Who waits longer for a page has found a defect.
PATIENCE_S: Final = 30.0

_ELEMENTS: Final = """
return Array.from(document.querySelectorAll("*"), (one) =>
  [one.localName, one.getAttributeNames().sort()]);
"""

_LOADED: Final = """
return performance.getEntriesByType("resource").map((one) => one.name)
  .filter((name) => !name.startsWith("blob:") && !name.startsWith("data:"));
"""


#: How much of a screenshot is not of its most frequent color, and where that is.
_INK: Final = """
const [picture, done] = arguments, image = new Image();
image.onload = () => {
  const canvas = new OffscreenCanvas(image.width, image.height);
  const context = canvas.getContext("2d");
  context.drawImage(image, 0, 0);
  const { data } = context.getImageData(0, 0, image.width, image.height);
  const pixels = new Uint32Array(data.buffer), counts = new Map();
  for (const one of pixels) counts.set(one, (counts.get(one) ?? 0) + 1);
  const [ground, count] = [...counts].sort((a, b) => b[1] - a[1])[0];
  let left = image.width, right = 0, top = image.height, bottom = 0;
  pixels.forEach((one, at) => {
    if (one === ground) return;
    const x = at % image.width, y = Math.floor(at / image.width);
    left = Math.min(left, x), right = Math.max(right, x);
    top = Math.min(top, y), bottom = Math.max(bottom, y);
  });
  done([counts.size, 1 - count / pixels.length, left, top, right, bottom]);
};
image.src = "data:image/png;base64," + picture;
"""


class Ink(NamedTuple):
    """Pixels of a screenshot that differ from its background.

    Attributes:
        num_colors: How many colors there are.
        share: Of the pixels, that are not of the most frequent color.
        left: Where what is drawn begins, in pixels.
        top: The same.
        right: Where it ends.
        bottom: The same.
    """

    num_colors: int
    share: float
    left: int
    top: int
    right: int
    bottom: int


class Window:
    """A page in a browser.

    Args:
        driver: Drives the browser.
    """

    def __init__(self, driver: Chrome) -> None:
        self.driver = driver

    def open(self, page: Path | str) -> None:
        """Show a file, or an address, and wait until it is drawn."""
        self.driver.get(page.as_uri() if isinstance(page, Path) else page)
        # A page draws when its data is unpacked, long after a browser calls it loaded.
        self.wait_for('!document.querySelector("[aria-busy=true]")')

    def run(self, script: str, *arguments: object) -> Any:
        """Run a script in the page and return its result."""
        return self.driver.execute_script(script, *arguments)

    def wait_for(self, condition: str, *arguments: object) -> Any:
        """Wait until an expression of the page is true, or not null; return it.

        Raises:
            TimeoutException: It never was.
        """
        wait = WebDriverWait(self.driver, PATIENCE_S, poll_frequency=0.02)
        script = f"return ({condition})"
        return wait.until(lambda _: self.run(script, *arguments), condition)

    def click(self, selector: str, text: str = "") -> None:
        """Click the first of these elements with this text.

        Raises:
            TimeoutException: There is none.
        """
        script = """Array.from(document.querySelectorAll(arguments[0])).find(
            (one) => !arguments[1] || one.innerText === arguments[1])"""
        self.wait_for(script, selector, text).click()

    def click_at(self, selector: str, x: float, y: float) -> None:
        """Click so far from the left upper corner of an element."""
        self._at(selector, x, y).click().perform()

    def double_click_at(self, selector: str, x: float, y: float) -> None:
        """Double click so far from the left upper corner of an element."""
        self._at(selector, x, y).double_click().perform()

    def _at(self, selector: str, x: float, y: float) -> ActionChains:
        element = self.driver.find_element("css selector", selector)
        size = element.size
        return ActionChains(self.driver).move_to_element_with_offset(
            element, x - size["width"] / 2, y - size["height"] / 2
        )

    def press(self, *keys: str) -> None:
        """Press keys one after the other, wherever the focus is."""
        actions = ActionChains(self.driver)
        for key in keys:
            actions.send_keys(key)
        actions.perform()

    def touch(self, selector: str, *moments: list[tuple[float, float]]) -> None:
        """Put fingers on an element, move them from moment to moment, and lift them.

        Args:
            selector: The element.
            moments: Of each moment where the fingers are, from its left upper corner.
        """
        box = self.run(
            "const { x, y } = document.querySelector(arguments[0])"
            ".getBoundingClientRect(); return [x, y]",
            selector,
        )
        kinds = ["touchStart", *["touchMove"] * (len(moments) - 1), "touchEnd"]
        for kind, fingers in zip(kinds, [*moments, []], strict=True):
            points = [
                {"x": box[0] + x, "y": box[1] + y, "id": number}
                for number, (x, y) in enumerate(fingers)
            ]
            self.driver.execute_cdp_cmd(
                "Input.dispatchTouchEvent", {"type": kind, "touchPoints": points}
            )

    def elements(self) -> list[list[Any]]:
        """Of each element the tag and the names of its attributes."""
        return self.run(_ELEMENTS)

    def loaded(self) -> list[str]:
        """Return the URLs that the page has loaded besides itself."""
        return self.run(_LOADED)

    def ink(self) -> Ink:
        """Return the visible ink of the page; leave the page."""
        picture = self.driver.get_screenshot_as_base64()
        self.open("about:blank")
        return Ink(*self.driver.execute_async_script(_INK, picture))

    def complaints(self) -> list[str]:
        """Warnings and errors in the console since it was asked last."""
        said = self.driver.get_log("browser")
        return [one["message"] for one in said if one["level"] in ("WARNING", "SEVERE")]

    def forget(self) -> None:
        """Show nothing, and forget what was said."""
        self.open("about:blank")
        self.complaints()
