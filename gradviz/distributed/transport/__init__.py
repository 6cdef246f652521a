"""How messages get from one worker to another: one interface, several ways."""
