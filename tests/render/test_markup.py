import xml.etree.ElementTree as ET

import pytest

from gradviz.render.markup import document, element, group, number


def test_content_and_attributes_are_escaped():
    made = element("text", "a < b & c", fill='"><script>')

    parsed = ET.fromstring(made)
    assert parsed.text == "a < b & c"
    assert parsed.attrib == {"fill": '"><script>'}


def test_names_of_attributes_are_python_names():
    assert element("rect", class_="bar", stroke_width=2) == (
        '<rect class="bar" stroke-width="2"/>'
    )


def test_a_tooltip_is_escaped():
    assert "<title>a &lt; b</title>" in group([], tooltip="a < b")


@pytest.mark.parametrize(
    ("value", "written"), [(1, "1"), (1.0, "1"), (1.25, "1.2"), (-3.06, "-3.1")]
)
def test_lengths_have_one_decimal_at_most(value, written):
    assert number(value) == written


def test_a_document_is_well_formed_and_needs_nothing_from_elsewhere():
    data = document("a < b", 100, 50.4, [element("text", "x")])

    picture = ET.fromstring(data)
    assert picture.get("viewBox") == "0 0 100 50"
    assert data.count(b"http") == 1  # the namespace
    assert b"<script" not in data
