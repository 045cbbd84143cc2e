"""What the live page says: why models are refused, failures, an empty system, an unknown run, a lost connection."""

import re
from typing import Any

import pytest
from axe_playwright_python.async_playwright import Axe
from playwright.async_api import Browser, Page, expect

from shared.bus.topology import JUDGE_SEGMENTS
from shared.contracts.driver import DriverFailed
from shared.contracts.ids import Digest, JudgeName, RunId
from shared.contracts.scores import DimensionScore, JudgeResult
from shared.store import keys
from tests.browser.live_page import (
    HELPED,
    OPERATOR,
    VIEWER,
    Coordinator,
    Theme,
    in_a_browser,
    open_tab,
    two_epochs,
)
from tests.events import segment_ready
from tests.unit.coordinator.harness import RUN, Harness

pytestmark = in_a_browser
REFUSED = {"passed": False, "gates": {"enough_pairs": False}, "thresholds": {"pairs": 50}}
VIEWS = ("overview", "learning", "segments", "map", "judges", "configuration", "logs", "start")
HOSTILE = (
    "<img src=x onerror='window.hacked=1'>",
    "</script><script>window.hacked=1</script>",
    "<svg/onload=window.hacked=1>",
    "javascript:window.hacked=1",
    "\u202e\u0000{{7*7}} ${window.hacked=1}",
)


async def show_view(page: Page, view: str) -> None:
    """Select a view as a click on its link does."""
    await page.click(f"#nav a[href='#/{view}']")
    await expect(page.locator("#nav a[aria-current]")).to_have_attribute("href", f"#/{view}")


async def test_a_refused_model_and_an_unshaped_epoch_say_why(coordinator: Coordinator, browser: Browser) -> None:
    await two_epochs(coordinator.harness, **REFUSED)
    page = await open_tab(browser, coordinator.address())
    sentence = "not used: 4 confident pairs, 50 needed"
    why = f"Epoch 1 was not shaped: the reward model of epoch 0 was {sentence}. Its own reward model is {sentence}."
    await expect(page.locator(".sentence")).to_have_text(why)
    await expect(page.locator("#epochs tbody tr").last).to_contain_text(sentence)


async def fail(harness: Harness, reason: str) -> None:
    """End the run as the trainer does when its driver has failed too often."""
    failed = DriverFailed(run=RUN, epoch=0, attempt=1, reason=reason, time=harness.time)
    await harness.store.create(keys.driver_failed(RUN, 1), failed.to_bytes())
    await harness.passes(2)


async def test_a_failed_run_shows_its_reason_as_a_banner(coordinator: Coordinator, browser: Browser) -> None:
    await coordinator.harness.create_run()
    await coordinator.harness.passes()
    await fail(coordinator.harness, "The ROM is missing: start the system with --rom.")
    page = await open_tab(browser, coordinator.address())
    await expect(page.locator(".banner")).to_contain_text("The run has failed. The ROM is missing")
    await expect(page.locator(".banner code")).to_have_text(f"zelda run resume {RUN}")


async def test_an_empty_page_says_what_to_type_then_shows_the_run(coordinator: Coordinator, browser: Browser) -> None:
    page = await open_tab(browser, coordinator.address(OPERATOR))
    await expect(page.locator("#now")).to_contain_text("zelda run start -s world=garden")
    await coordinator.create_run(RUN)
    await expect(page.locator("#state")).to_have_text("created", timeout=15_000)


async def test_an_unknown_run_is_named_and_no_other_is_shown(coordinator: Coordinator, browser: Browser) -> None:
    await coordinator.create_run(RUN)
    page = await open_tab(browser, coordinator.address(query="?run=nope"))
    await expect(page.locator(".banner")).to_contain_text("There is no run nope")
    await expect(page.locator("#state")).to_have_text("no run")


async def test_a_lost_connection_is_obvious_and_ends_by_itself(coordinator: Coordinator, browser: Browser) -> None:
    await coordinator.create_run(RUN)
    page = await open_tab(browser, coordinator.address())
    await expect(page.locator("#state")).to_have_text("created")
    await coordinator.stop()
    await expect(page.locator(".banner")).to_contain_text("Connection lost.", timeout=15_000)
    await expect(page.locator("#age")).to_have_text("connection lost")
    await expect(page.locator("#state")).not_to_have_class(re.compile("good|wait"))
    await coordinator.start()
    await expect(page.locator(".banner")).to_have_count(0, timeout=15_000)


async def test_a_second_tab_needs_no_token(coordinator: Coordinator, browser: Browser) -> None:
    await coordinator.create_run(RUN)
    page = await open_tab(browser, coordinator.address())
    await expect(page.locator("#state")).to_have_text("created")
    assert "token" not in page.url
    second = await page.context.new_page()
    await second.goto(page.url)
    await expect(second.locator("#state")).to_have_text("created")


async def hostile_scores(coordinator: Coordinator) -> None:
    """A judged segment whose judge answers with hostile texts."""
    text = HOSTILE[0]
    scores = coordinator.harness.scores(0, 0)
    judge = JudgeResult(
        judge=JudgeName("rules"),
        route=text,
        model=text,
        prompt=Digest("0" * 64),
        status="judged",
        dimensions={"progress": DimensionScore(votes=[1], value=0.2, unanimous=True, spread=0)},
        reasons=list(HOSTILE),
    )
    hostile = scores.model_copy(update={"judges": [judge], "error": text})
    await coordinator.harness.store.create(keys.score(RUN, 0, scores.segment), hostile.to_bytes())


async def test_texts_of_judges_and_games_never_become_markup(coordinator: Coordinator, browser: Browser) -> None:
    harness = coordinator.harness
    await harness.create_run()
    await harness.passes()
    await hostile_scores(coordinator)
    await fail(harness, " ".join(HOSTILE))
    page = await open_tab(browser, coordinator.address())
    await expect(page.locator("#votes .reason").first).to_have_text(HOSTILE[0])
    await expect(page.locator("#votes .reason")).to_have_count(len(HOSTILE))
    await expect(page.locator(".banner")).to_contain_text(HOSTILE[1])
    assert await page.locator("#view [onerror], #view svg, #view script, #banners img, #banners svg").count() == 0
    assert await page.evaluate("window.hacked") is None


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
async def test_every_view_is_accessible_and_fits_its_screen(
    coordinator: Coordinator, browser: Browser, theme: Theme, width: int
) -> None:
    await two_epochs(coordinator.harness, **REFUSED)
    page = await open_tab(browser, coordinator.address(OPERATOR), width=width, theme=theme)
    problems: list[Any] = []
    page.on("pageerror", lambda error: problems.append(error))
    for view in VIEWS:
        await show_view(page, view)
        found = await Axe().run(page)
        assert found.violations_count == 0, f"{view}: {found.generate_report()}"
        assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth"), view
    assert problems == []


@pytest.mark.parametrize(("theme", "width"), [("light", 1280), ("dark", 390)])
async def test_the_interface_is_documented_accessibly_and_once(
    coordinator: Coordinator, browser: Browser, theme: Theme, width: int
) -> None:
    page = await open_tab(browser, f"http://127.0.0.1:{coordinator.port}/docs", width=width, theme=theme)
    for group in ("RunConfig", "PpoConfig", "LabelsConfig", "ImitationConfig"):
        await expect(page.get_by_role("heading", name=group)).to_be_visible()
    await expect(page.get_by_text("the token is missing or unknown", exact=True)).to_have_count(1)
    routes = page.locator("section", has=page.get_by_role("heading", name="POST /runs", exact=True))
    await expect(routes).to_contain_text("the run already exists: same key, same body")
    found = await Axe().run(page)
    assert found.violations_count == 0, found.generate_report()
    assert await page.evaluate("document.documentElement.scrollWidth <= innerWidth")


@pytest.mark.parametrize("theme", ["light", "dark"])
async def test_the_login_is_accessible(coordinator: Coordinator, browser: Browser, theme: Theme) -> None:
    page = await open_tab(browser, coordinator.address("an-unknown-token-0123"), theme=theme)
    await expect(page.locator("#refused")).to_have_text("The token is unknown.")
    found = await Axe().run(page)
    assert found.violations_count == 0, found.generate_report()


async def test_charts_name_their_figures_and_draw_training_and_evaluation(
    coordinator: Coordinator, browser: Browser
) -> None:
    await two_epochs(coordinator.harness)
    page = await open_tab(browser, coordinator.address())
    await show_view(page, "learning")
    plot = page.get_by_role("img", name=re.compile("^milestones per episode"))
    await expect(plot).to_have_attribute("aria-label", re.compile("training 0.500, evaluation 0.500"))
    await expect(plot.locator("canvas")).to_have_count(1)
    await expect(plot).to_contain_text("0.5 ± 0.2")  # the 95 % interval over episodes
    accuracy = page.get_by_role("img", name=re.compile("^held-out accuracy"))
    await expect(accuracy).to_have_attribute("aria-label", re.compile("chance 0.500"))


async def test_takeovers_and_suggestions_are_drawn_beside_the_judges(
    coordinator: Coordinator, browser: Browser
) -> None:
    await two_epochs(coordinator.harness)
    page = await open_tab(browser, coordinator.address(query=f"?run={RUN}"))
    await show_view(page, "judges")
    for name in (
        "takeovers of an epoch, by ending, newest values: dialog finished 3.00, dialog given up 1.00$",
        "share of takeovers that reached their goal, newest values: dialog 0.750$",
        "suggestions of an epoch, by outcome, newest values: missing 4.00, not taken 1.00",
        "questions of an epoch, by outcome, newest values: dialog answered 4.00, text answered 3.00, text unavail",
        "mean time of an answer in s, newest values: dialog 1.50, text 0.250$",
    ):
        await expect(page.get_by_role("img", name=re.compile(name))).to_have_count(1)


async def test_help_is_shown_while_its_epoch_plays(coordinator: Coordinator, browser: Browser) -> None:
    harness = coordinator.harness
    await harness.create_run()
    await harness.passes()
    page = await open_tab(browser, coordinator.address(query=f"?run={RUN}"))
    await expect(page.get_by_text("steps of this epoch")).to_be_visible()
    table = page.get_by_role("region", name=re.compile("^This epoch so far"))
    await expect(table).to_have_count(0)  # nobody helps, or nothing is reported yet
    await harness.send_heartbeat(assistance=HELPED)
    await harness.passes()
    rows = ["takeovers, dialog4finished 3, given up 175 % reached their goal", "takeovers, puzzle0none"]
    rows += ["suggestions7taken 2, not taken 1, missing 4", "questions, dialog4answered 41.50 s an answer"]
    rows += ["questions, text7answered 3, unavailable 40.25 s an answer, breaker open: the route rests"]
    await expect(table.locator("tbody tr")).to_have_text(rows)


async def test_a_second_run_is_drawn_beside_and_its_settings_compared(
    coordinator: Coordinator, browser: Browser
) -> None:
    await two_epochs(coordinator.harness)
    await coordinator.create_run(RunId("other"), seed=7)
    page = await open_tab(browser, coordinator.address(query=f"?run={RUN}"))
    await show_view(page, "learning")
    await page.select_option("#compare", "other")
    await expect(page.get_by_role("button", name="Remove other")).to_be_visible()
    own = page.get_by_role("img", name=re.compile(f"^milestones per episode.* {RUN}, training .* {RUN}, evaluation "))
    await expect(own).to_have_count(1)
    await show_view(page, "configuration")
    await page.select_option("#other", "other")
    await expect(page.locator("tbody tr")).to_have_text(["seed07"])


@pytest.mark.parametrize(("token", "buttons"), [(VIEWER, 0), (OPERATOR, 3)])
async def test_only_operators_see_actions_and_a_click_stops(
    coordinator: Coordinator, browser: Browser, token: str, buttons: int
) -> None:
    await coordinator.create_run(RUN)
    page = await open_tab(browser, coordinator.address(token))
    await show_view(page, "configuration")
    await expect(page.locator("section").filter(has_text="Configuration")).to_be_visible()
    await expect(page.get_by_role("button", name="the run")).to_have_count(buttons)
    if buttons:
        await page.get_by_role("button", name="Stop the run").click()
        await expect(page.locator("#state")).to_have_text("stopped", timeout=15_000)


async def test_the_form_starts_a_run_and_repeats_a_refusal(coordinator: Coordinator, browser: Browser) -> None:
    page = await open_tab(browser, coordinator.address(OPERATOR))
    await show_view(page, "start")
    await page.get_by_label("name", exact=True).fill("mine")
    await page.get_by_role("button", name="garden, some minutes").click()
    await page.locator("[name=epoch_steps]").fill("1000")
    await expect(page.locator(".sentence")).to_contain_text("3,000 steps")
    await page.get_by_role("button", name="Start the run").click()
    await expect(page.locator(".start [role=alert]")).to_contain_text("lower batch_size")
    await page.locator("[name=epoch_steps]").fill("20000")
    await page.locator(".start details summary").first.click()
    await page.locator("[name=starts]").fill('{"cave": 2}')
    await page.get_by_role("button", name="Start the run").click()
    await expect(page.locator(".start [role=alert]")).to_contain_text("config.starts.cave")
    await page.locator("[name=starts]").fill("")
    await page.get_by_role("button", name="Start the run").click()
    await expect(page.locator("#state")).to_have_text("created", timeout=15_000)
    await expect(page.locator("#runs")).to_have_value("mine")
    config = (await coordinator.harness.models.runs.latest(RunId("mine"))).config
    assert (config.world, config.epochs, config.batch_size, config.sampling.budget) == ("garden", 3, 2000, 100)


async def test_stages_and_the_least_remaining_time_are_shown(coordinator: Coordinator, browser: Browser) -> None:
    harness = coordinator.harness
    await two_epochs(harness)
    progress = await harness.models.progress(RUN)
    assert progress is not None
    shown = progress.model_copy(update={"stage": "judging", "stage_share": 0.5, "eta_s": 90.0, "eta_at_least": True})
    await harness.store.put(keys.progress(RUN), shown.to_bytes())
    page = await open_tab(browser, coordinator.address())
    await expect(page.locator(".stages [aria-current]")).to_have_text("judging 50 %")
    await expect(page.locator(".figures")).to_contain_text("over 1 min 30 s")
    await expect(page.locator(".figures")).to_contain_text("of 0 to 2")  # epochs count from 0, also here
    await expect(page.locator(".timeline li")).to_have_text(["0", "1", "2"])


@pytest.mark.parametrize("token", [VIEWER, OPERATOR])
async def test_a_dead_letter_shows_its_reason_and_operators_replay(
    coordinator: Coordinator, browser: Browser, token: str
) -> None:
    bus = coordinator.harness.bus
    await coordinator.create_run(RUN)
    await bus.publish(segment_ready(0))
    for delivery in await bus.fetch(JUDGE_SEGMENTS, 1, 0):
        await delivery.reject(HOSTILE[0])
    page = await open_tab(browser, coordinator.address(token))
    await expect(page.locator("#dead .why")).to_have_text(HOSTILE[0])
    replay = page.get_by_role("button", name="Replay dead letter")
    if token == VIEWER:
        await expect(replay).to_have_count(0)
        return
    assert (await Axe().run(page)).violations_count == 0
    await replay.click()
    await expect(page.locator("#dead .why")).to_have_count(0)
    assert await bus.pending(JUDGE_SEGMENTS) == 1


async def test_an_operator_writes_a_note_that_a_viewer_reads(coordinator: Coordinator, browser: Browser) -> None:
    await coordinator.create_run(RUN)
    page = await open_tab(browser, coordinator.address(OPERATOR))
    await show_view(page, "configuration")
    await page.locator("[name=tags]").fill("baseline, Not_a_tag")
    await page.locator("[name=note]").fill(HOSTILE[0])
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator(".notes [role=status]")).to_contain_text("tags.1: 'Not_a_tag' is not a Tag")
    await page.locator("[name=tags]").fill("baseline")
    await page.get_by_role("button", name="Save").click()
    await expect(page.locator(".notes [role=status]")).to_have_text("Saved.")
    await expect(page.locator("#runs option")).to_have_text(f"{RUN} (created) · baseline")
    reader = await open_tab(browser, coordinator.address(VIEWER))
    await show_view(reader, "configuration")
    await expect(reader.locator(".note")).to_have_text(HOSTILE[0])
    await expect(reader.locator("#view .chip")).to_have_text("baseline")


async def test_an_operator_deletes_a_stopped_run_with_two_clicks(coordinator: Coordinator, browser: Browser) -> None:
    await coordinator.create_run(RunId("other"))
    await coordinator.create_run(RUN)
    page = await open_tab(browser, coordinator.address(OPERATOR, f"?run={RUN}"))
    await show_view(page, "configuration")
    await expect(page.get_by_role("button", name="Delete the run")).to_be_disabled()
    await page.get_by_role("button", name="Stop the run").click()
    await page.get_by_role("button", name="Delete the run").click(timeout=15_000)
    await page.get_by_role("button", name=f"Really delete the run {RUN}?").click()
    await expect(page.locator("#runs option")).to_have_text(["other (created)"])
    await expect(page.locator("#banners")).to_be_empty()
