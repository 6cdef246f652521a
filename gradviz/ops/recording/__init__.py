"""How a computation becomes part of a graph: variables, nodes, views, changes."""
