"""The keys of a replay, for its bottom line and its help."""

from typing import Final

#: Content of the bottom line, as far as there is room: key, and its effect.
SHORT: Final = (
    ("?", "keys"),
    ("q", "quit"),
    ("space", "play"),
    ("←→", "step"),
    ("/", "node"),
    ("g", "go to"),
    ("f", "follow"),
    (",.", "pop"),
    ("+-", "speed"),
    ("↑↓ tab", "neighbor"),
    ("esc", "release"),
)

#: All of them: keys, what they do.
KEYS: Final = (
    ("space", "play, or pause"),
    ("→ ←  or l h", "the next event, the one before"),
    ("page down, up", "20 events on, or back"),
    ("home, end", "the first event, the last one"),
    (". ,", "the next task that is popped, the one before"),
    ("> <", "the next node that is done, the one before"),
    ("+ -", "play faster, slower"),
    ("g", "go to a time (1.5ms), an event (120), a part (50%)"),
    ("/", "find a node: by id, name, line, module or parameter (again: the next)"),
    ("f", "follow the node: step on its events only"),
    ("↑ ↓  or k j", "look at the first that gives to it, that gets from it"),
    ("tab, enter", "point at any neighbor (shift: backwards), look at it"),
    ("J K", "scroll long queues and countdowns"),
    ("escape", "look at the node of each event again, follow none"),
    ("?", "these keys"),
    ("q, ctrl-c", "quit"),
)

HELP: Final = "Keys\n\n" + "\n".join(f"  {key:<15}{does}" for key, does in KEYS)
