"""The replay full screen, driven by keys."""

import asyncio

import pytest
from textual import events

from gradviz.render.replay.app import Help, Prompt, ReplayApp
from gradviz.render.replay.player import Player
from tests.render.replay.conftest import replay_of


def driven(replay, drive, size=(80, 24)):
    """Return the result of `drive`, given the app and a function for its keys."""

    async def run():
        app = ReplayApp(Player(replay))
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            return await drive(app, pilot)

    return asyncio.run(run())


def text_of(app):
    strips = app.screen._compositor.render_strips()
    return "\n".join(strip.text for strip in strips)


def test_keys_move_it_and_the_screen_shows_where_it_is(busy):
    async def drive(app, pilot):
        places = []
        for key in ("right", "l", "left", "end", "home", "full_stop", "comma"):
            await pilot.press(key)
            places.append(app.player.place)
        await pilot.press("pagedown", "greater_than_sign", "less_than_sign")
        await pilot.pause()
        return places, app.player.place, text_of(app)

    places, last, text = driven(busy, drive)

    assert places == [1, 2, 1, 20, 0, 3, 3]
    assert f"event {last + 1}/21" in text
    assert "Queues: " in text


def test_a_node_is_asked_for_followed_and_let_go(busy):
    async def drive(app, pilot):
        await pilot.press("slash")
        assert isinstance(app.screen, Prompt)
        await pilot.press("E", "x", "p", "enter", "f", "right")
        followed = app.player.selected, app.player.is_followed
        await pilot.press("escape")
        await pilot.press("slash", "escape")
        return followed, app.player.is_chosen, app.player.message

    assert driven(busy, drive) == (((0, 4), True), False, "")


def test_any_neighbor_is_gone_to(busy):
    async def drive(app, pilot):
        await pilot.press("slash", *"Mul", "enter", "tab", "tab", "tab")
        pointed = text_of(app)
        await pilot.press("enter")
        there = app.player.selected
        await pilot.press("shift+tab", "J", "K", "enter")
        return pointed, there, app.player.selected

    pointed, there, back = driven(busy, drive)
    assert "▸Sin (1)" in pointed
    assert (there, back) == ((0, 1), (0, 2))


def test_a_time_is_asked_for_and_what_is_none_is_said(busy):
    async def drive(app, pilot):
        await pilot.press("g", *"29ns", "enter")
        place = app.player.place
        await pilot.press("g", *"x", "enter")
        await pilot.pause()
        return place, text_of(app).splitlines()[-1].strip()

    place, foot = driven(busy, drive)
    assert place == 8
    assert foot == "'x' is not a time (1.5ms), event (120) or part (50%)"


@pytest.mark.parametrize(("typed", "place"), [("g12", 11), ("/Exp", 7)])
def test_keys_typed_without_a_pause_are_heard(typed, place, busy):
    names = {"/": "slash"}

    async def drive(app, pilot):
        for key in typed:
            app.post_message(events.Key(names.get(key, key), key))
        app.post_message(events.Key("enter", None))
        for _ in range(50):
            if app.player.place and not isinstance(app.screen, Prompt):
                break
            await pilot.pause()
        return app.player.place

    assert driven(busy, drive) == place


def test_help_tells_all_keys_and_goes(busy):
    async def drive(app, pilot):
        await pilot.press("question_mark")
        await pilot.pause()
        shown = isinstance(app.screen, Help), text_of(app)
        await pilot.press("q")
        await pilot.pause()
        return shown, isinstance(app.screen, Help), app.is_running

    (was_open, text), is_open, runs = driven(busy, drive)
    assert (was_open, is_open, runs) == (True, False, True)
    assert "find a node: by id, name, line, module or parameter" in text


def test_it_is_drawn_anew_for_another_size(busy):
    async def drive(app, pilot):
        found = []
        for size in ((200, 60), (20, 12), (80, 24)):
            await pilot.resize_terminal(*size)
            await pilot.pause()
            lines = text_of(app).splitlines()
            found.append((len(lines[0]), len(lines)))
            assert "event" in lines[1] or "1/21" in lines[0]
        return found

    assert driven(busy, drive) == [(200, 60), (20, 12), (80, 24)]


@pytest.mark.parametrize("key", ["q", "ctrl+c"])
def test_it_ends(key, busy):
    async def drive(app, pilot):
        await pilot.press("space")
        await pilot.press(key)
        await pilot.pause()
        return app.is_running

    assert not driven(busy, drive)


def test_names_are_no_markup(story):
    name = "[bold red]x[/bold red] [@click=app.quit]y[/]"
    node = story.node(1, name=name)
    story.begin(0, [node], at=0)
    story.push(0, node, at=10)

    async def drive(app, pilot):
        await pilot.press("end", "slash", *"[b]", "enter")
        await pilot.pause()
        return text_of(app)

    assert "[bold red]x[/bold red]" in driven(replay_of(story), drive)
