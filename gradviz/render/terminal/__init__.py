"""Views of a trace in a terminal, with rich: tables, and bars of block characters."""

from gradviz.render.terminal.advice import print_advice
from gradviz.render.terminal.comparison import print_comparison
from gradviz.render.terminal.critical_path import print_critical_path
from gradviz.render.terminal.events import (
    print_events,
    print_events_head,
    story_title,
)
from gradviz.render.terminal.explanation import print_explanation
from gradviz.render.terminal.groups import print_groups
from gradviz.render.terminal.memory import print_memory, print_memory_moment
from gradviz.render.terminal.order import print_order
from gradviz.render.terminal.prediction import print_prediction
from gradviz.render.terminal.queues import print_queue_contents, print_queues
from gradviz.render.terminal.simulation import print_simulation
from gradviz.render.terminal.summary import print_summary
from gradviz.render.terminal.tables import make_console
from gradviz.render.terminal.timeline import print_timeline
from gradviz.render.terminal.utilisation import print_utilisation

__all__ = [
    "make_console",
    "print_advice",
    "print_comparison",
    "print_critical_path",
    "print_events",
    "print_events_head",
    "print_explanation",
    "print_groups",
    "print_memory",
    "print_memory_moment",
    "print_order",
    "print_prediction",
    "print_queue_contents",
    "print_queues",
    "print_simulation",
    "print_summary",
    "print_timeline",
    "print_utilisation",
    "story_title",
]
