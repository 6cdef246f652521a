"""A browser that opens what we write, as people do: Chromium, driven by Selenium."""

import shutil
from collections.abc import Iterator
from pathlib import Path

import pytest
from selenium import webdriver

from tests.browser.window import Window
from tests.hostile.traces import tell_anew

#: As little as possible that is not about the page: no sandbox, for tests run as root,
#: and nothing that the browser does for itself over a network.
_ARGUMENTS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-quic",
    "--no-first-run",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--window-size=1280,800",
)

_BROWSERS = ("chromium", "chromium-browser", "google-chrome")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Window]:
    """One browser for all tests of a module, without a profile."""
    program = next(filter(None, map(shutil.which, _BROWSERS)), None)
    driver = shutil.which("chromedriver")
    if program is None or driver is None:
        pytest.skip("Chromium and chromedriver are not both here")
    options = webdriver.ChromeOptions()
    options.binary_location = program
    for argument in _ARGUMENTS:
        options.add_argument(argument)
    options.add_argument(f"--user-data-dir={tmp_path_factory.mktemp('profile')}")
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    service = webdriver.ChromeService(executable_path=driver)
    chrome = webdriver.Chrome(options=options, service=service)
    try:
        yield Window(chrome)
    finally:
        chrome.quit()


@pytest.fixture
def window(browser: Window) -> Iterator[Window]:
    """The browser for one test, which must leave no error in the console."""
    browser.forget()
    yield browser
    assert browser.complaints() == []


@pytest.fixture(scope="session")
def traces(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    """A recording, and the same with other texts; see `tell_anew`."""
    return tell_anew(tmp_path_factory.mktemp("hostile"))
