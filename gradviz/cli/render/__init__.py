"""``gradviz render``: pictures of a trace.

In: a trace. Out: a picture, or a page. Read `picture_command`, which has what all
share, `over_time`, which has what timelines, queues and memory share besides, then the
picture that you want, such as `render_graph`: one file each.
"""
