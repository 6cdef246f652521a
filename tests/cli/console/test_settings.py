import json

import click
import pytest

from gradviz.cli.console.settings import read_settings
from gradviz.cli.main import gradviz


@pytest.fixture
def settings(tmp_path):
    """Write the ``pyproject.toml`` of the test's folder."""
    return (tmp_path / "pyproject.toml").write_text


def tasks(result) -> list[int]:
    assert result.exit_code == 0, result.output
    return [json.loads(line)["task"] for line in result.stdout.splitlines()]


def test_the_file_says_what_an_option_is_unless_told(settings, trace_path, call):
    both = tasks(call("show", "order", "--json", "--pass", "all"))
    settings('[tool.gradviz.show.order]\ntask = "all"\njson = true\n')

    assert tasks(call("show", "order")) == both


def test_the_command_line_wins_over_the_environment_and_that_over_the_file(
    settings, trace_path, call, monkeypatch
) -> None:
    first, last = tasks(call("show", "order", "--json", "--pass", "all"))
    settings(f'[tool.gradviz.show.order]\ntask = "{first}"\njson = true\n')
    assert tasks(call("show", "order")) == [first]

    monkeypatch.setenv("GRADVIZ_SHOW_ORDER_TASK", "all")
    assert tasks(call("show", "order")) == [first, last]
    assert tasks(call("show", "order", "--pass", "last")) == [last]


def test_the_nearest_file_upwards_is_the_one(settings, tmp_path) -> None:
    settings("[tool.gradviz.show]\n")
    deep = tmp_path / "a" / "b"
    deep.mkdir(parents=True)
    assert read_settings(deep, ["show"])[0].path == tmp_path / "pyproject.toml"

    (tmp_path / "a" / "pyproject.toml").write_text("[project]\nname = 'gradviz-user'\n")
    assert not read_settings(deep, ["show"])[0].values


def test_a_broken_file_that_does_not_name_gradviz_is_told_and_no_more(
    settings, trace_path, call, tmp_path
) -> None:
    settings("[tool.black\n")

    result = call("show", "order")

    assert result.exit_code == 0
    path = tmp_path / "pyproject.toml"
    assert f"warning: {path}: it is not TOML: " in result.stderr
    assert "(at line 1, column 12)" in result.stderr


@pytest.fixture
def own_settings(tmp_path, monkeypatch):
    """Write the user's own settings."""
    home = tmp_path / "home"
    (home / "gradviz").mkdir(parents=True)
    monkeypatch.setenv("XDG_CONFIG_HOME", str(home))
    return (home / "gradviz" / "config.toml").write_text


class TestAFolder:
    """Note [Settings of a folder]."""

    def test_is_told_of_what_it_sets(self, settings, trace_path, call, tmp_path):
        settings('[tool.gradviz.show.order]\ntask = "all"\njson = true\n')

        result = call("show", "order", "--pass", "last")

        path = tmp_path / "pyproject.toml"
        assert f"gradviz: {path} sets --json to True\n" in result.stderr
        assert "--pass" not in result.stderr  # the command line says that

    @pytest.mark.parametrize(
        ("command", "key", "value"),
        [
            ("export", "force", "true"),
            ("export", "quiet", "true"),
            ("render.graph", "force", "true"),
            ("render.graph", "open", "true"),
            ("render.report", "quiet", "true"),
            ("merge", "force", "true"),
            ("run", "then", "['export -f -o x.jsonl']"),
            ("run", "live", "true"),
        ],
    )
    def test_may_not_do_what_is_the_users_own(
        self, command, key, value, settings, trace_path, call
    ):
        settings(f"[tool.gradviz.{command}]\n{key} = {value}\n")

        result = call(*command.split("."))

        assert result.exit_code == 2
        assert (
            f"line 2: tool.gradviz.{command}.{key}: a project may not" in result.stderr
        )

    @pytest.mark.parametrize("output", ["../x.jsonl", "{up}/x.jsonl", "link/x.jsonl"])
    def test_may_not_have_anything_written_outside_of_it(
        self, output, trace_path, call, tmp_path, monkeypatch
    ):
        folder = tmp_path / "unpacked"
        folder.mkdir()
        monkeypatch.chdir(folder)
        (folder / "link").symlink_to(tmp_path)
        output = output.format(up=tmp_path)
        (folder / "pyproject.toml").write_text(
            f"[tool.gradviz.export]\noutput = '{output}'\n"
        )

        result = call("export", str(trace_path))

        assert result.exit_code == 2
        assert f"{output!r} is not inside {folder}" in result.stderr
        assert not (tmp_path / "x.jsonl").exists()

    def test_may_say_where_an_output_goes_inside_of_it(
        self, settings, trace_path, call, tmp_path
    ):
        settings("[tool.gradviz.export]\noutput = 'x.jsonl'\n")

        assert call("export").exit_code == 0
        assert (tmp_path / "x.jsonl").exists()
        again = call("export")
        assert again.exit_code == 1  # it is there already

    def test_is_set_right_by_the_environment(
        self, settings, trace_path, call, tmp_path, monkeypatch
    ):
        settings("[tool.gradviz.export]\noutput = 'x.jsonl'\n")
        monkeypatch.setenv("GRADVIZ_EXPORT_OUTPUT", "y.jsonl")

        result = call("export")

        assert (tmp_path / "y.jsonl").exists()
        assert "pyproject.toml" not in result.stderr


class TestTheUser:
    def test_may_set_all_that_options_can(
        self, own_settings, trace_path, call, tmp_path
    ):
        path = tmp_path / "there.jsonl"
        path.write_text("old")
        own_settings(f"[export]\noutput = '{path}'\nforce = true\nquiet = true\n")

        result = call("export", str(trace_path))

        assert (result.exit_code, result.stderr) == (0, "")
        assert path.read_text() != "old"

    def test_yields_to_the_folder(self, own_settings, settings, trace_path, call):
        first, last = tasks(call("show", "order", "--json", "--pass", "all"))
        own_settings(f"[show.order]\njson = true\ntask = '{first}'\n")
        assert tasks(call("show", "order")) == [first]

        settings(f"[tool.gradviz.show.order]\ntask = '{last}'\n")
        assert tasks(call("show", "order")) == [last]

    def test_is_told_what_is_wrong(self, own_settings, trace_path, call):
        own_settings("[show.order]\n\ntsk = 1\n")

        result = call("show", "order")

        assert result.exit_code == 2
        assert "config.toml: line 3: show.order.tsk: no such option" in result.stderr


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("[tool.gradviz", "it is not TOML"),
        ("tool = 7 # gradviz", "tool: expected a table of options, got 7"),
        ("tool.gradviz = 7", "tool.gradviz: expected a table of options, got 7"),
        ("tool.gradviz.paint = {}", "tool.gradviz.paint: no such command (run, attach"),
        ("tool.gradviz.show = 1", "tool.gradviz.show: expected a table of options"),
        ("tool.gradviz.show.x = 1", "tool.gradviz.show.x: no such option"),
        ("tool.gradviz.show.order.tsk = 1", "tool.gradviz.show.order.tsk: no such opt"),
        ("tool.gradviz.show.order.json = 'yes'", "json: expected true or false, got"),
        ("tool.gradviz.show.order.task = true", "task: expected a text or a number"),
        ("tool.gradviz.show.order.task = [1]", "task: expected a text or a number"),
    ],
)
def test_an_invalid_setting_is_refused_in_one_line_with_file_and_key(
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
    assert "tool.gradviz.show.queues.at: 'noon' is not a time" in result.stderr


def test_settings_of_other_commands_do_no_harm(settings, trace_path, call) -> None:
    settings("tool.gradviz.run.watchdog = 'never'\ntool.gradviz.show.queues.at = 1")

    assert call("show", "order").exit_code == 0


def test_a_run_takes_its_numbers_from_the_file(settings, call) -> None:
    settings("tool.gradviz.run.watchdog = -1")

    result = call("run", "x.py")

    assert result.exit_code == 2
    assert "tool.gradviz.run.watchdog: -1.0 is not in the range" in result.stderr


def named_options(group=gradviz, *names):
    """Yield the words of each command, and a long name of each of its options."""
    for name in group.list_commands(click.Context(group)):
        command = group.get_command(click.Context(group), name)
        if isinstance(command, click.Group):
            yield from named_options(command, *names, name)
        for option in command.params:
            if isinstance(option, click.Option):
                yield from (
                    ((*names, name), option, one)
                    for one in option.opts
                    if one.startswith("--")
                )


def test_each_option_has_a_variable_of_each_of_its_long_names(monkeypatch):
    for words, option, name in named_options():
        context = click.Context(gradviz, auto_envvar_prefix="GRADVIZ")
        for word in words:
            command = context.command.resolve_command(context, [word])[1]
            context = click.Context(command, parent=context, info_name=word)
        variable = "_".join(["gradviz", *words, name[2:].replace("-", "_")]).upper()
        monkeypatch.setenv(variable, "set")

        assert option.resolve_envvar_value(context) == "set", variable
        monkeypatch.delenv(variable)


def test_variables_named_after_parameters_of_functions_work_as_before(
    trace_path, call, monkeypatch
):
    answers = []
    for names in (("JSON", "PASS"), ("AS_JSON", "TASK")):
        with monkeypatch.context() as environment:
            for name, value in zip(names, ("1", "all"), strict=True):
                environment.setenv(f"GRADVIZ_SHOW_ORDER_{name}", value)
            answers.append(tasks(call("show", "order")))

    assert (
        answers[0]
        == answers[1]
        == tasks(call("show", "order", "--json", "--pass", "all"))
    )
