"""A heading cell of a table without text becomes an ordinary cell; all other headings stay."""

import build
import table_corners

TABLE = '<tr>\n<th></th>\n<th style="text-align: right;"> </th>\n<th>time</th>\n</tr>\n<tr><td></td></tr>'


def test_an_empty_heading_becomes_a_cell_with_its_attributes():
    found = table_corners.on_page_content(TABLE, page=None)
    assert found == TABLE.replace("<th></th>", "<td></td>").replace(
        '<th style="text-align: right;"> </th>', '<td style="text-align: right;"></td>'
    )


def test_the_build_uses_the_hook():
    assert table_corners.__file__ in map(str, build.HOOKS)
