"""A replay in a terminal: as text, event by event, or full screen."""
