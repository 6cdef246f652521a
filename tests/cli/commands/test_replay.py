"""``gradviz replay`` where there is no terminal."""

import json

from gradviz.trace.reading.reader import load_trace


def test_every_event_of_the_pass_is_printed_with_its_number(trace_path, call):
    trace = load_trace(trace_path)
    num_events = sum(1 for _ in trace.events(task=trace.tasks[-1]))

    done = call("replay", "--plain", trace_path)

    assert done.exit_code == 0
    heads = [one for one in done.stdout.splitlines() if one.startswith("Event ")]
    assert [one.split(",")[0] for one in heads] == [
        f"Event {number} of {num_events}" for number in range(1, num_events + 1)
    ]
    assert done.stderr == ""


def test_without_a_terminal_it_is_printed_and_that_is_said(trace_path, call):
    done = call("replay", trace_path)

    assert done.stdout == call("replay", "--plain", trace_path).stdout
    assert done.stderr == "gradviz: no terminal to draw on: printing as with --plain\n"


def test_some_events_are_chosen_by_kind_thing_and_number(trace_path, call):
    done = call(
        *("replay", trace_path, "--json", "--kind", "node_*", "--of", "node Double:0"),
        *("--limit", "2"),
    )

    kinds = [json.loads(line)["event"]["kind"] for line in done.stdout.splitlines()]
    assert kinds == ["node_started", "node_completed"]
    assert done.stderr == ""


def test_a_part_of_the_time_is_chosen_and_one_moment(trace_path, call):
    def times(*words):
        done = call("replay", "--json", trace_path, *words)
        return [json.loads(line)["after_ns"] for line in done.stdout.splitlines()]

    every = times()
    middle, end = every[len(every) // 2], every[-1]

    assert times("--from", f"{middle}ns") == [one for one in every if one >= middle]
    assert times("--until", f"{middle}ns") == [one for one in every if one <= middle]
    assert times("--at", f"{middle}ns") == [middle]
    assert times("--at", f"{end + 1_000}ns") == [end]


def test_events_that_the_limit_leaves_out_are_reported(trace_path, call):
    done = call("replay", "--plain", "--limit", "3", trace_path)

    assert "the first 3 events are shown," in done.stderr


def test_a_document_says_what_it_is(trace_path, call):
    done = call("replay", "--json", "--kind", "task_popped", trace_path)

    for line in done.stdout.splitlines():
        document = json.loads(line)
        assert (document["schema"], document["version"]) == ("gradviz.replay", 1)
        assert document["choice"]["popped"]["node"] == document["event"]["node"]


def test_a_replay_that_has_no_events_to_show_is_refused_in_one_line(
    trace_path, call, record_empty
):
    record_empty(trace_path.parent / "empty.gvt")
    for words, said in (
        (["--kind", "mark"], "nothing to replay: the passes have no events of kind"),
        (["--from", "9s"], "nothing to replay: the passes have no events from then on"),
        (["--step", "1", "--pass", "1"], "--step and --pass exclude each other"),
        (["--of", "node 99999"], "the trace has no node 99999"),
        (["empty.gvt"], "the trace holds no backward pass"),
    ):
        path = [] if "empty.gvt" in words else [trace_path]
        done = call("replay", "--plain", *words, *path)
        assert done.exit_code != 0
        assert said in done.stderr
        assert len(done.stderr.splitlines()) == 1


def test_a_trace_that_was_cut_is_replayed_as_far_as_it_goes(trace_path, call):
    path = trace_path.parent / "cut.gvt"
    path.write_bytes(trace_path.read_bytes()[:-5])

    done = call("replay", "--plain", path)

    assert done.exit_code == 0
    assert "is incomplete" in done.stderr
    assert done.stdout.splitlines()[1].startswith("The trace is incomplete: ")


def test_a_film_of_it_is_written_where_o_says(trace_path, call, tmp_path):
    done = call("replay", trace_path, "-o", tmp_path / "film.svg", "--limit", "5")

    assert done.stdout == ""
    assert "filmed 5 events" in done.stderr
    film = (tmp_path / "film.svg").read_text()
    assert "<svg " in film
    assert 'dur="5s"' in film
    again = call("replay", trace_path, "-o", tmp_path / "film.svg")
    assert "exists already" in again.stderr


def test_of_no_event_there_is_no_film(trace_path, call, tmp_path):
    wanted = ("--kind", "node_failed", "-o", tmp_path / "film.svg")
    done = call("replay", trace_path, *wanted)

    assert "there is nothing to replay" in done.stderr
    assert not (tmp_path / "film.svg").exists()
