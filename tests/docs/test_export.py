"""docs/export.md says what the code does."""

import re

from gradviz.cli.commands.export import FORMATS
from gradviz.export.tables import TABLES
from tests.docs.pages import DOCS, blocks, outputs

PATH = DOCS / "export.md"
PAGE = PATH.read_text(encoding="utf-8")


def test_every_table_is_on_the_page_with_its_columns():
    told = re.findall(
        r"^\| `(\w+)` \| [^|]* \| ((?:`\w+`(?:, )?)+) \|$", PAGE, re.MULTILINE
    )

    assert {name: re.findall(r"\w+", columns) for name, columns in told} == {
        name: [field.name for field in table.fields] for name, table in TABLES.items()
    }


def test_every_format_is_on_the_page_with_its_suffixes():
    told = re.findall(
        r"^\| `(\w+)` \| ((?:`\.[\w.-]+`(?:, )?)+) \|", PAGE, re.MULTILINE
    )

    assert {name: tuple(re.findall(r"`(\S+)`", files)) for name, files in told} == {
        name: format_.suffixes for name, format_ in FORMATS.items()
    }


def test_the_page_prints_what_it_says():
    assert outputs(PATH) == [block.output for block in blocks(PATH)] != []
