"""Tables of a page while it is made."""

import numpy as np

from gradviz.render.page.tables import EdgeTable, narrowed


def test_a_narrowed_table_has_the_same_numbers_in_fewer_bytes():
    columns = [np.array(one) for one in ([0, 1], [-1, 300], [0, 1 << 40])]

    table = narrowed(EdgeTable(*columns))

    assert isinstance(table, EdgeTable)
    assert [one.tolist() for one in table] == [one.tolist() for one in columns]
    assert [one.itemsize for one in table] == [1, 2, 8]
