"""Films: each frame shows what a replay says right after its event."""

import re
from xml.etree import ElementTree as ET

import pytest

import gradviz as gv
from gradviz.analysis.moments.event_replay import Replay
from gradviz.analysis.moments.node_stages import STAGES
from gradviz.analysis.moments.story import Filter
from gradviz.render.film import film as films
from gradviz.render.film.film import frames_of, make_film
from gradviz.render.film.film_panels import dots
from gradviz.render.film.film_stage import MAX_SCALE
from gradviz.render.replay.words import ReplayWords
from tests.analysis.conftest import Story
from tests.analysis.random_passes import random_trace
from tests.render.film.seen import SVG, shown_at, still, texts


def replay_of(trace, **wanted):
    return Replay(trace, Filter(tasks=(trace.tasks[0],), **wanted))


def film_of(replay, **options):
    return make_film(replay, replay.tasks[0], frames_of(replay), **options)


@pytest.fixture(scope="module", params=[(1, 0), (7, 2), (23, 1)], ids=str)
def replay(request):
    seed, num_devices = request.param
    return replay_of(random_trace(seed, num_devices, size=12))


def test_each_frame_has_the_queues_that_the_replay_tells(replay):
    film = film_of(replay, size=(1_000, 2_000))
    words = ReplayWords(replay)

    for frame in range(0, len(replay), 7):
        moment = replay.at(frame).moment
        rows = texts(still(film, frame))
        for queue, tasks in moment.queues.items():
            title = f"Queue {words.queue(queue)}: {len(tasks)} task"
            (at,) = (nth for nth, row in enumerate(rows) if row.startswith(title))
            told = [row for row in rows[at + 1 :] if not row.startswith("seq ")]
            assert told[: len(tasks)] == [
                words.short(one.node, one.task) for one in tasks
            ]


def test_each_frame_has_the_countdowns_that_the_replay_tells(replay):
    film = film_of(replay, size=(1_000, 2_000))
    words = ReplayWords(replay)

    for frame in range(0, len(replay), 7):
        moment = replay.at(frame).moment
        rows = texts(still(film, frame))
        at = next(nth for nth, row in enumerate(rows) if row.startswith("Countdowns: "))
        assert f"{moment.num_waiting} node" in rows[at]
        told = []
        for one in moment.countdowns:
            gradients = dots(len(one.gradients), one.remaining)
            told += [
                f"{gradients}  {words.short(one.node, one.task)}",
                f"waits for {one.remaining} more" if one.remaining else "ready",
            ]
        assert rows[at + 1 : at + 1 + len(told)] == told


def test_each_frame_says_its_event_and_what_each_thread_runs(replay):
    film = film_of(replay)
    words = ReplayWords(replay)

    for frame in range(0, len(replay), 7):
        shown = replay.at(frame)
        rows = texts(still(film, frame))
        assert any(
            row.startswith(f"event {frame + 1:,} of {len(replay):,} · ") for row in rows
        )
        assert words.sentence(shown.event) in " ".join(rows)
        for worker in shown.moment.workers:
            nodes = [words.short(one.node, one.task) for one in worker.running]
            assert not nodes or " > ".join(nodes) in rows


def test_the_film_shows_each_frame_in_its_time(replay):
    film = film_of(replay, speed=10)

    for frame in range(0, film.num_frames, 11):
        assert sorted(shown_at(film, frame)) == sorted(still(film, frame))
    ends = {one.get("dur") for one in ET.fromstring(film.svg()).iter(f"{SVG}animate")}
    assert ends == {f"{film.num_frames / 10:g}s"}


def test_the_last_frame_is_held_before_the_film_begins_anew(replay):
    film = film_of(replay, speed=4)

    assert film.num_frames == len(replay) + 4 * films.HOLD_S
    assert film.frame(film.num_frames - 1) == film.frame(len(replay) - 1)


def test_a_film_without_animation_shows_the_fullest_frame(replay):
    film = film_of(replay)
    root = ET.fromstring(film.svg())
    for parent in list(root.iter()):
        for move in parent.findall(f"{SVG}animate"):
            parent.remove(move)
    moments = [replay.at(place).moment for place in range(len(replay))]
    waiting = [sum(one.num_queued.values()) + one.num_waiting for one in moments]

    clock = re.search(r"event ([\d,]+) of", " ".join(_visible(root)))
    assert clock is not None
    assert int(clock[1].replace(",", "")) == waiting.index(max(waiting)) + 1


def _visible(one):
    if one.get("display") == "none":
        return
    yield one.text or ""
    for child in one:
        yield from _visible(child)


def test_of_too_many_events_some_are_shown_and_the_film_says_so(replay):
    every = frames_of(replay, len(replay))
    assert every == [*range(len(replay))]

    for most in (2, 5, 30):
        places = frames_of(replay, most)
        film = make_film(replay, replay.tasks[0], places)
        assert len(places) <= most
        assert places == sorted(set(places))
        assert (places[0], places[-1]) == (0, len(replay) - 1)
        said = f"{len(places)} of {len(replay):,} events are shown"
        assert said in film.notes
        assert any(said in text for text in texts(still(film, 0)))


def test_starts_of_nodes_are_the_last_to_be_left_out(replay):
    starts = {*replay.of_kind("node_started").tolist()}

    places = frames_of(replay, len(starts) + 2)

    assert starts | {0, len(replay) - 1} == {*places}


def test_the_node_of_an_event_has_a_ring_and_its_gradient_has_a_path():
    story = Story()
    add = story.node(1, name="AddBackward0")
    mul = story.node(2, add, name="MulBackward0")
    story.begin(0, [mul, add], at=0)
    story.take(0, mul, at=(10, 11, 12))
    story.give(0, add, mul, at=20, remaining=1)
    replay = replay_of(story.trace())
    (at,) = replay.of_kind("gradient_buffered").tolist()
    film = film_of(replay)

    looks = [attributes for _, attributes, _ in still(film, at)]
    assert sum("'given'" in one for one in looks) == 1
    assert sum("'ring'" in one for one in looks) == 1
    assert not any("'given'" in one for _, one, _ in still(film, at - 1))


@pytest.mark.parametrize("size", [1, 5, 12, 60])
def test_a_graph_fills_its_room_but_is_not_made_too_large(size):
    film = film_of(replay_of(random_trace(1, 0, size=size)))
    root = ET.fromstring(film.frame(0))

    graph = root.findall(f"{SVG}g[@transform]")
    (scale,) = {float(one.get("transform").split("scale(")[1][:-1]) for one in graph}
    boxes = [box for one in graph for box in one.iter(f"{SVG}rect")]
    shares = []
    for start, extent, of_film in zip(
        "xy", ("width", "height"), films.SIZE, strict=True
    ):
        begins = [float(box.get(start)) for box in boxes]
        ends = [float(box.get(start)) + float(box.get(extent)) for box in boxes]
        shares.append(scale * (max(ends) - min(begins)) / of_film)
    wide, high = shares
    assert scale <= MAX_SCALE
    assert wide < 0.56
    assert high < 0.8
    assert scale == MAX_SCALE or wide > 0.5 or high > 0.7


def test_a_box_in_a_frame_has_its_name_without_that_of_the_frame():
    """Titles are those of a picture of the graph."""

    class Filmed(gv.nn.Module):
        def __init__(self):
            super().__init__()
            # No two layers are alike, or they would be drawn once.
            layers = [gv.nn.Linear(wide, wide + 1) for wide in range(1, 19)]
            self.first = gv.nn.Sequential(*layers[:9])
            self.second = gv.nn.Sequential(*layers[9:])

        def forward(self, x):
            return self.second(self.first(x).exp()).exp()

    with gv.record() as recording:
        Filmed()(gv.ones(1, 1)).sum().backward()
    film = film_of(replay_of(recording.trace), size=(700, 500))

    rows = texts(still(film, 0))
    assert {"Filmed", "first", "second"} <= {*rows}
    assert not [row for row in rows if row.startswith("Filmed.")]


def test_texts_of_a_trace_are_no_markup():
    story = Story()
    name = '</text><script>"&\x1b[31m'
    node = story.node(1, name=name)
    story.begin(0, [node], at=0)
    story.push(0, node, at=10)
    film = film_of(replay_of(story.trace()))

    root = ET.fromstring(film.svg())
    tags = {one.tag.removeprefix(SVG) for one in root.iter()}
    assert tags <= {
        *("svg", "title", "style", "rect", "g", "text", "tspan", "defs", "marker"),
        *("path", "animate"),
    }
    assert '</text><script>"&' in " ".join(root.itertext())
    assert "\x1b" not in film.svg().decode()


def test_a_pass_that_fails_is_filmed_to_its_end():
    replay = replay_of(random_trace(5, 0, size=10, fails=True))
    film = film_of(replay)

    looks = " ".join(one for _, one, _ in still(film, len(replay) - 1))
    assert f"'s{STAGES.index('failed')}'" in looks


def test_rows_that_do_not_fit_are_counted(replay):
    film = film_of(replay, size=films.MIN_SIZE)
    moments = [replay.at(place).moment for place in range(len(replay))]
    fullest = max(range(len(replay)), key=lambda place: moments[place].num_countdowns)
    rows = texts(still(film, fullest))
    told = [row for row in rows if row == "ready" or row.startswith("waits for ")]

    left_out = moments[fullest].num_countdowns - len(told)
    assert left_out > 0
    assert f"and {left_out} more" in rows
