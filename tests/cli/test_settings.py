import json

import pytest

from gradviz.cli.settings import read_settings


@pytest.fixture
def settings(tmp_path):
    """Write the ``pyproject.toml`` of the test's folder."""
    return (tmp_path / "pyproject.toml").write_text


def tasks(result) -> list[int]:
    assert result.exit_code == 0, result.output
    return [json.loads(line)["task"] for line in result.stdout.splitlines()]


def test_the_file_says_what_an_option_is_unless_told(settings, trace_path, call):
    both = tasks(call("show", "order", "--json", "--task", "all"))
    settings('[tool.gradviz.show.order]\ntask = "all"\njson = true\n')

    assert tasks(call("show", "order")) == both


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(
    settings, trace_path, call, monkeypatch
) -> None:
    first, last = tasks(call("show", "order", "--json", "--task", "all"))
    settings(f'[tool.gradviz.show.order]\ntask = "{first}"\njson = true\n')
    assert tasks(call("show", "order")) == [first]

    monkeypatch.setenv("GRADVIZ_SHOW_ORDER_TASK", "all")
    assert tasks(call("show", "order")) == [first, last]
    assert tasks(call("show", "order", "--task", "last")) == [last]


def test_the_nearest_file_upwards_is_the_one(settings, tmp_path) -> None:
    settings("[tool.gradviz.show]\n")
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert read_settings(deep, ["show"]).path == tmp_path / "pyproject.toml"

    (tmp_path / "a" / "pyproject.toml").write_text("[project]\nname = 'gradviz-user'\n")
    assert not read_settings(deep, ["show"]).values


def test_a_file_that_does_not_name_gradviz_is_not_even_parsed(
    settings, trace_path, call
) -> None:
    settings("[tool.black\n")

    assert call("show", "order").exit_code == 0


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[tool.gradviz", "it is no TOML"),
        ("tool.gradviz = 7", "tool.gradviz: expected a table of options, got 7"),
        ("tool.gradviz.paint = {}", "tool.gradviz.paint: no such command (run, show"),
        ("tool.gradviz.show = 1", "tool.gradviz.show: expected a table of options"),
        ("tool.gradviz.show.x = 1", "tool.gradviz.show.x: no such option"),
        ("tool.gradviz.show.order.tsk = 1", "tool.gradviz.show.order.tsk: no such opt"),
        ("tool.gradviz.show.order.json = 'yes'", "json: expected true or false, got"),
        ("tool.gradviz.show.order.task = true", "task: expected a text or a number"),
        ("tool.gradviz.show.order.task = [1]", "task: expected a text or a number"),
    ],
)
def test_what_no_option_can_be_is_one_line_with_file_and_key(
    text, told, settings, trace_path, call, tmp_path
) -> None:
    settings(text)

    result = call("show", "order")

    assert (result.exit_code, result.stdout) == (2, "")
    assert len(result.stderr.splitlines()) == 1
    assert result.stderr.startswith(f"gradviz: {tmp_path / 'pyproject.toml'}: ")
    assert told in result.stderr


def test_a_value_is_checked_as_on_the_command_line(settings, trace_path, call) -> None:
    settings("tool.gradviz.show.queues.at = 'noon'")

    result = call("show", "queues")

    assert result.exit_code == 2
    assert "tool.gradviz.show.queues.at: 'noon' is no time" in result.stderr


def test_settings_of_other_commands_do_no_harm(settings, trace_path, call) -> None:
    settings("tool.gradviz.run.watchdog = 'never'\ntool.gradviz.show.queues.at = 1")

    assert call("show", "order").exit_code == 0


def test_a_run_takes_its_numbers_from_the_file(settings, call) -> None:
    settings("tool.gradviz.run.watchdog = -1")

    result = call("run", "x.py")

    assert result.exit_code == 2
    assert "tool.gradviz.run.watchdog: -1.0 is not in the range" in result.stderr
