"""The page in a browser: no errors, nothing loaded, pointing, clicking, keys, night and phone; pictures are kept.

Needs Chromium and its driver (`apt-get install chromium chromium-driver`) and selenium.
"""

from __future__ import annotations

import base64
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

pytestmark = pytest.mark.slow

SCREENSHOTS = Path(__file__).resolve().parents[3] / "build" / "screenshots"
PHONE, DESK = (390, 844), (1280, 900)

FLAGS = (
    "--headless=new",
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
    "--hide-scrollbars",
)


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Any]:
    selenium = pytest.importorskip("selenium.webdriver", reason="needs selenium") if _may_skip() else None
    chromium, driver = shutil.which("chromium"), shutil.which("chromedriver")
    if chromium is None or driver is None:
        missing = "needs chromium and chromedriver"
        pytest.skip(missing) if _may_skip() else pytest.fail(missing)
    if selenium is None:
        from selenium import webdriver as selenium
    options = selenium.ChromeOptions()
    options.binary_location = chromium
    for flag in (*FLAGS, f"--user-data-dir={tmp_path_factory.mktemp('profile')}"):
        options.add_argument(flag)
    options.set_capability("goog:loggingPrefs", {"browser": "ALL", "performance": "ALL"})
    service = selenium.ChromeService(driver)
    opened = selenium.Chrome(options=options, service=service)
    opened.set_script_timeout(120)
    yield opened
    opened.quit()


def _may_skip() -> bool:
    return os.environ.get("CI") != "true"


@pytest.fixture(scope="module")
def desk(browser: Any, page_file: Path) -> Page:
    """The page in a large window by day; opened once, since drawing every plot takes its time."""
    return Page(browser, page_file)


class Page:
    """A page opened in a browser.

    Args:
        browser: the driver.
        file: of the page.
        size: of the window, width and height.
        night: whether the reader prefers the dark.
    """

    def __init__(self, browser: Any, file: Path, size: tuple[int, int] = DESK, night: bool = False) -> None:
        self.browser = browser
        phone = size[0] < 600
        metrics = {"width": size[0], "height": size[1], "deviceScaleFactor": 1, "mobile": phone}
        browser.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", metrics)
        browser.execute_cdp_cmd("Emulation.setTouchEmulationEnabled", {"enabled": phone})
        scheme = {"name": "prefers-color-scheme", "value": "dark" if night else "light"}
        browser.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [scheme]})
        browser.get_log("browser")
        browser.get_log("performance")
        browser.get("about:blank")
        browser.get(file.as_uri())
        browser.execute_async_script("const done = arguments[0]; drawAll().then(() => requestAnimationFrame(done));")

    def run(self, script: str, *arguments: Any) -> Any:
        return self.browser.execute_script(script, *arguments)

    def errors(self) -> list[str]:
        return [entry["message"] for entry in self.browser.get_log("browser")]

    def lonely_key(self) -> str:
        """The design of the front whose point is farthest from all others, and which is not the chosen one."""
        return str(
            self.run(
                """
                const { data, _fullLayout: { xaxis, yaxis } } = document.getElementById("plot-front");
                const points = data.filter((trace) => trace.customdata).flatMap((trace) => trace.customdata.map(
                    (key, i) => ({ key, x: xaxis.d2p(trace.x[i]), y: yaxis.d2p(trace.y[i]) })));
                const chosen = document.querySelector("#front tr[aria-current]").dataset.key;
                const gap = (one) => Math.min(...points.filter((other) => other !== one)
                    .map((other) => Math.hypot(one.x - other.x, one.y - other.y)));
                const front = payload.front.front.map((place) => `t${payload.front.ids[place]}`);
                return points.filter(({ key }) => front.includes(key) && key !== chosen)
                    .sort((one, other) => gap(other) - gap(one))[0].key;
                """
            )
        )

    def point_of(self, key: str) -> tuple[float, float]:
        """Where a design's point is in the window, in pixels; the page is scrolled to the plot."""
        return tuple(
            self.run(
                """
                const plot = document.getElementById("plot-front");
                plot.scrollIntoView({ block: "center", behavior: "instant" });
                const box = plot.getBoundingClientRect();
                const { xaxis, yaxis } = plot._fullLayout;
                for (const trace of plot.data) {
                    const at = (trace.customdata || []).indexOf(arguments[0]);
                    if (at >= 0) return [box.left + xaxis._offset + xaxis.d2p(trace.x[at]),
                                         box.top + yaxis._offset + yaxis.d2p(trace.y[at])];
                }
                """,
                key,
            )
        )

    def mouse(self, kind: str, place: tuple[float, float]) -> None:
        event = {"type": kind, "x": place[0], "y": place[1], "button": "left", "clickCount": 1}
        self.browser.execute_cdp_cmd("Input.dispatchMouseEvent", event)

    def wait(self, condition: str) -> Any:
        """Wait until a JavaScript expression is true, and give its value."""
        from selenium.webdriver.support.ui import WebDriverWait

        return WebDriverWait(self.browser, 20).until(lambda browser: browser.execute_script(f"return {condition};"))

    def screenshot(self, name: str) -> None:
        """Keep a picture of the whole page."""
        SCREENSHOTS.mkdir(parents=True, exist_ok=True)
        width, height = self.run("return [innerWidth, document.documentElement.scrollHeight]")
        clip = {"x": 0, "y": 0, "width": width, "height": height, "scale": 1}
        taken = self.browser.execute_cdp_cmd(
            "Page.captureScreenshot", {"clip": clip, "captureBeyondViewport": True, "format": "png"}
        )
        (SCREENSHOTS / f"{name}.png").write_bytes(base64.b64decode(taken["data"]))


def front_keys(page: Page) -> list[str]:
    return list(page.run("return payload.front.front.map((place) => `t${payload.front.ids[place]}`)"))


def detail(page: Page) -> str:
    return str(page.run("return document.getElementById('detail').textContent"))


def test_it_opens_without_errors_and_loads_nothing(desk: Page) -> None:
    assert desk.run("return document.querySelectorAll('.plot .main-svg').length > 10")
    assert desk.run("return document.querySelectorAll('img, b').length") == 0
    assert desk.errors() == []
    wanted = [
        entry for entry in desk.browser.get_log("performance") if '"Network.requestWillBeSent"' in entry["message"]
    ]
    elsewhere = [entry["message"] for entry in wanted if "report.html" not in entry["message"]]
    assert [message for message in elsewhere if '"url":"http' in message] == []
    desk.screenshot("report")


def test_pointing_at_a_design_shows_it(desk: Page) -> None:
    key = desk.lonely_key()
    desk.mouse("mouseMoved", desk.point_of(key))
    desk.wait(f"document.querySelector('#plot-front .hoverlayer')?.textContent.includes('design {key[1:]}')")
    text = desk.run("return document.querySelector('#plot-front .hoverlayer').textContent")
    assert desk.run("return payload.front.designs[payload.front.ids.indexOf(Number(arguments[0]))]", key[1:]) in text


def test_clicking_a_design_shows_its_row(desk: Page) -> None:
    key = desk.lonely_key()
    place = desk.point_of(key)
    desk.mouse("mouseMoved", place)
    desk.wait(f"document.querySelector('#plot-front .hoverlayer')?.textContent.includes('design {key[1:]}')")
    desk.mouse("mousePressed", place)
    desk.mouse("mouseReleased", place)
    assert desk.wait(f"document.querySelector('#front tr[data-key=\"{key}\"]').getAttribute('aria-current')") == "true"
    assert f"Design {key[1:]}," in detail(desk)
    assert f"--pick {key[1:]}" in detail(desk)
    assert desk.run("return location.hash") == f"#{key}"


def test_keys_choose_rows_and_walk_along_the_front(desk: Page) -> None:
    from selenium.webdriver.common.keys import Keys

    keys = front_keys(desk)
    row = desk.browser.find_element("css selector", f'#front tr[data-key="{keys[0]}"]')
    row.send_keys(Keys.ENTER)
    assert f"Design {keys[0][1:]}," in detail(desk)
    desk.browser.find_element("id", "plot-front").send_keys(Keys.ARROW_RIGHT)
    assert f"Design {keys[min(1, len(keys) - 1)][1:]}," in detail(desk)
    desk.browser.find_element("css selector", "#everything summary").send_keys(Keys.ENTER)
    assert len(desk.wait("document.querySelectorAll('#everything tbody tr')")) == desk.run(
        "return payload.front.ids.length"
    )


def test_the_tables_of_designs_show_all_their_columns(desk: Page) -> None:
    wider = desk.run(
        "const boxes = [...document.querySelectorAll('#front .block > .scroll')];"
        "return boxes.map((box) => box.scrollWidth - box.clientWidth);"
    )
    assert len(wider) == 2, "the front and the classics"
    assert max(wider) <= 0


def test_names_of_classics_do_not_cover_one_another(desk: Page) -> None:
    boxes = desk.run(
        """
        return [...document.querySelectorAll("#plot-front .textpoint text")].map((text) => {
            const { left, top, right, bottom } = text.getBoundingClientRect();
            return [left, top, right, bottom];
        });
        """
    )
    assert len(boxes) >= 8
    # where points lie on one another, so may the names of one pair
    covering = [
        (one, other)
        for place, one in enumerate(boxes)
        for other in boxes[:place]
        if one[0] < other[2] and other[0] < one[2] and one[1] < other[3] and other[1] < one[3]
    ]
    assert len(covering) <= 1


def test_sorting_puts_the_best_first(desk: Page) -> None:
    desk.run("document.getElementById('everything').open = true")
    desk.wait("document.querySelectorAll('#everything thead button').length")
    desk.run("document.querySelectorAll('#everything thead button')[3].click()")  # validation error
    first = desk.run("return document.querySelector('#everything tbody tr').dataset.key")
    errors = desk.run("return payload.front.values.val_error")
    ids = desk.run("return payload.front.ids")
    assert errors[ids.index(int(first[1:]))] == min(error for error in errors if error is not None)


def test_other_axes_can_be_chosen(desk: Page) -> None:
    desk.run("const menu = document.getElementById('axis-x'); menu.value = 'parameters';"
             "menu.dispatchEvent(new Event('change'));")  # fmt: skip
    assert desk.wait("document.getElementById('plot-front').layout.xaxis.title.text === 'parameters'")
    assert desk.errors() == []


def test_names_appear_as_they_are_in_plots(desk: Page) -> None:
    ticks = desk.run(
        "return [...document.querySelectorAll('#plot-confusion-validation .xtick text')].map((t) => t.textContent)"
    )
    assert ticks[:2] == ["</script><b>x", "a&b"]
    assert ticks[2].startswith("%{y} $1$ [red]x")


def test_a_phone_needs_no_sideways_scrolling(browser: Any, page_file: Path) -> None:
    page = Page(browser, page_file, size=PHONE)
    assert page.run("return document.documentElement.scrollWidth") <= PHONE[0]
    assert page.run("return document.getElementById('plot-front').layout.dragmode") is False
    assert page.errors() == []
    page.screenshot("report-phone")


def test_the_night_is_dark(browser: Any, page_file: Path) -> None:
    page = Page(browser, page_file, night=True)
    colour = page.run("return getComputedStyle(document.body).backgroundColor")
    assert max(int(part) for part in colour[4:-1].split(",")) < 60
    assert page.run("return document.getElementById('plot-front').layout.font.color") == "#e7ecf2"
    assert page.errors() == []
    page.screenshot("report-night")


def test_a_run_without_a_feasible_design_opens(browser: Any, bounded_run: Any, tmp_path: Path) -> None:
    page = Page(browser, bounded_run.report(tmp_path / "bounded.html"))
    assert page.errors() == []
    assert "No design is chosen." in detail(page)
    page.run("document.querySelector('#front tr[data-key]').click()")
    assert "breaks a bound" in detail(page)
    page.screenshot("report-infeasible")


def test_everything_that_can_be_used_has_a_name_and_can_be_reached(desk: Page) -> None:
    unnamed = desk.run(
        """
        return [...document.querySelectorAll("a[href], button, select, summary, [tabindex]")].filter((element) =>
            element.closest(".modebar") === null && !element.getAttribute("aria-label") && !element.textContent.trim()
            && !element.labels?.length).map((element) => element.outerHTML.slice(0, 80))
        """
    )
    assert unnamed == []
    assert desk.run("return document.querySelectorAll('html[lang], h1').length") == 2
