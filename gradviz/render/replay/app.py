"""The replay full screen: a terminal's keys become calls of a player.

The only module that imports textual, and imported only to play. What is on the screen
is made elsewhere (`screen`), a text for each line: names of a trace are never markup.
"""

import asyncio
import contextlib
import signal
from threading import Thread
from typing import ClassVar, Final

from rich.text import Text
from textual import events
from textual.app import App, ComposeResult
from textual.binding import Binding, BindingType
from textual.containers import VerticalScroll
from textual.screen import ModalScreen
from textual.widgets import Input, Static

from gradviz.render.replay.keys import HELP
from gradviz.render.replay.player import Player
from gradviz.render.replay.screen import screen
from gradviz.render.replay.words import ReplayWords

#: Seconds between two drawings of the screen while it plays.
_TICK_S: Final = 1 / 20

#: Number of events in a page.
_PAGE: Final = 20

#: Number of rows by which lists are scrolled.
_ROWS: Final = 5


def play(player: Player) -> None:
    """Play on the terminal until the user quits; restore the terminal."""
    ReplayApp(player).run()


class ReplayApp(App[None]):
    """Plays on a terminal.

    Args:
        player: Replay that is played, and the event to begin with.
    """

    TITLE = "gradviz replay"
    ENABLE_COMMAND_PALETTE = False
    CSS = """
    Screen { overflow: hidden; }
    Board { width: 100%; height: 100%; text-wrap: nowrap; text-overflow: clip; }
    Prompt { align: center bottom; background: transparent; }
    Prompt Input { width: 100%; }
    Help { align: center middle; background: transparent; }
    Help VerticalScroll { width: 76; max-width: 100%; height: auto; max-height: 100%; }
    Help VerticalScroll { border: round $primary; background: $surface; }
    """
    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("q,ctrl+c,ctrl+q", "quit"),
        Binding("space", "play"),
        Binding("right,l", "step(1)"),
        Binding("left,h", "step(-1)"),
        Binding("pagedown", f"step({_PAGE})"),
        Binding("pageup", f"step(-{_PAGE})"),
        Binding("home", "edge(False)"),
        Binding("end", "edge(True)"),
        Binding("full_stop", "next('task_popped', 1)"),
        Binding("comma", "next('task_popped', -1)"),
        Binding("greater_than_sign", "next('node_completed', 1)"),
        Binding("less_than_sign", "next('node_completed', -1)"),
        Binding("plus,equals_sign", "faster(1)"),
        Binding("minus", "faster(-1)"),
        Binding("up,k", "walk(-1)"),
        Binding("down,j", "walk(1)"),
        Binding("tab", "point(1)", priority=True),
        Binding("shift+tab", "point(-1)", priority=True),
        Binding("enter", "enter"),
        Binding("J,shift+down", "scroll(1)"),
        Binding("K,shift+up", "scroll(-1)"),
        Binding("f", "follow"),
        Binding("escape", "release"),
        Binding("slash", "ask('find')", priority=True),
        Binding("g", "ask('jump')", priority=True),
        Binding("question_mark", "help"),
    ]

    def __init__(self, player: Player) -> None:
        super().__init__(ansi_color=True)  # those of the terminal, dark or light
        self.player = player
        self._board = Board(player)

    def compose(self) -> ComposeResult:
        """The one thing on the screen."""
        yield self._board

    def on_mount(self) -> None:
        """Begin to play when asked to, and end as asked to."""
        self.set_interval(_TICK_S, self._tick)
        Thread(target=self.player.replay.prepare, daemon=True).start()
        with contextlib.suppress(NotImplementedError, RuntimeError):
            # Else the terminal would be left as it is.
            loop = asyncio.get_running_loop()
            loop.add_signal_handler(signal.SIGTERM, self.exit)
            loop.add_signal_handler(signal.SIGHUP, self.exit)

    def _tick(self) -> None:
        if self.player.tick(_TICK_S) or not self.player.is_playing:
            self._board.show()

    def action_play(self) -> None:
        """Play or pause."""
        self.player.toggle()
        self._board.show()

    def action_step(self, by: int) -> None:
        """Move by some events."""
        self.player.is_playing = False
        self.player.step(by)
        self._board.show()

    def action_edge(self, is_end: bool) -> None:
        """Move to the first event, or the last one."""
        self.player.is_playing = False
        self.player.go(len(self.player.replay) if is_end else 0)
        self._board.show()

    def action_next(self, kind: str, by: int) -> None:
        """Move to the next event of a kind, or the one before."""
        self.player.is_playing = False
        self.player.next_of(kind, by)
        self._board.show()

    def action_faster(self, by: int) -> None:
        """Change the speed."""
        self.player.faster(by)
        self._board.show()

    def action_walk(self, by: int) -> None:
        """Look at a neighbor."""
        self.player.walk(by)
        self._board.show()

    def action_point(self, by: int) -> None:
        """Point at another neighbor."""
        self.player.point(by)
        self._board.show()

    def action_enter(self) -> None:
        """Look at the neighbor that is pointed at."""
        self.player.enter()
        self._board.show()

    def action_scroll(self, by: int) -> None:
        """Scroll long lists."""
        self.player.scroll(by * _ROWS)
        self._board.show()

    def action_follow(self) -> None:
        """Step on events of one node only, or on all again."""
        self.player.follow()
        self._board.show()

    def action_release(self) -> None:
        """Look at the node of each event again."""
        self.player.release()
        self._board.show()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool:
        """Return whether a key means that now: letters of an answer ask nothing."""
        del parameters
        return action != "ask" or not isinstance(self.screen, ModalScreen)

    async def action_ask(self, what: str) -> None:
        """Ask for a node, or where to go."""
        self.player.is_playing = False

        def answered(text: str | None) -> None:
            if text:
                getattr(self.player, what)(text)
            self._board.show()

        prompt = Prompt(_QUESTIONS[what])
        # Keys typed at once belong into the line: none is read before it is there.
        await self.push_screen(prompt, answered)
        prompt.set_focus(prompt.query_one(Input))

    def action_help(self) -> None:
        """Show the keys."""
        self.player.is_playing = False
        self.push_screen(Help(ReplayWords(self.player.replay)))


class Board(Static):
    """The whole screen.

    Args:
        player: Player that it shows.
    """

    def __init__(self, player: Player) -> None:
        super().__init__(markup=False)
        self._player = player
        self._words = ReplayWords(player.replay)
        self._drawn: tuple[object, ...] = ()

    def show(self) -> None:
        """Draw the player's state, unless it is already drawn."""
        player = self._player
        state = (
            *(player.place, player.selected, player.is_chosen, player.is_followed),
            *(player.is_playing, player.speed, player.message, self.size),
            *(player.pointed, player.scrolled),
        )
        if state != self._drawn and self.size.width:
            self._drawn = state
            lines = screen(player, self._words, *self.size)
            self.update(Text("\n").join(lines))

    def on_resize(self) -> None:
        """Draw it for another size."""
        self.show()

    def on_mouse_scroll_down(self, event: events.MouseScrollDown) -> None:
        """A step forward."""
        event.stop()
        self._player.step(1)
        self.show()

    def on_mouse_scroll_up(self, event: events.MouseScrollUp) -> None:
        """A step back."""
        event.stop()
        self._player.step(-1)
        self.show()


class Prompt(ModalScreen[str | None]):
    """A line to answer a question in; escape answers none.

    Args:
        question: Text that stands there before something is typed.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,ctrl+c", "dismiss(None)", priority=True)
    ]

    def __init__(self, question: str) -> None:
        super().__init__()
        self._question = question

    def compose(self) -> ComposeResult:
        """The line."""
        yield Input(placeholder=self._question, compact=True)

    def on_input_submitted(self, event: Input.Submitted) -> None:
        """It is answered."""
        self.dismiss(event.value)


class Help(ModalScreen[None]):
    """The keys, and the losses of the trace, until a key is pressed.

    Args:
        words: Of the replay.
    """

    BINDINGS: ClassVar[list[BindingType]] = [
        Binding("escape,q,question_mark,enter,ctrl+c", "dismiss", priority=True)
    ]

    def __init__(self, words: ReplayWords) -> None:
        super().__init__()
        self._words = words

    def compose(self) -> ComposeResult:
        """Yield all widgets."""
        text = "\n\n".join((HELP, *self._words.missing()))
        with VerticalScroll():
            yield Static(text, markup=False)


_QUESTIONS: Final = {
    "find": "a node: 27, #5, Mul:3, model.py:12, encoder.0, encoder.0.weight",
    "jump": "a time (1.5ms), an event (120), or a part (50%)",
}
