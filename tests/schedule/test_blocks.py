import pytest
from hypothesis import given
from hypothesis import strategies as st

from eigenscape.errors import InputError
from eigenscape.schedule.blocks import (
    Block,
    check_lines,
    drop_block,
    escape_percent,
    find_blocks,
    put_block,
)

OURS = Block("scene-1a2b3c", "/data/scene.toml", ("#SCRON --time=5", "0 3 * * * run"))
OTHER = Block("other-445566", "/data/other.toml", ("@daily run",))

tables = st.lists(st.text(st.characters(exclude_characters="\n\r"), max_size=30), max_size=6).map(
    lambda lines: "".join(f"{line}\n" for line in lines)
)


@given(tables, tables)
def test_put_and_drop__leave_the_entries_of_the_user_byte_for_byte(before, after):
    text = put_block(before, OTHER) + after
    put = put_block(text, OURS)
    assert put.startswith(text)
    assert find_blocks(put) == [OTHER, OURS]
    assert put_block(put, OURS) == put
    assert drop_block(put, OURS.name) == text
    changed = Block(OURS.name, OURS.title, ("0 4 * * * run",))
    assert drop_block(put_block(put, changed), OURS.name) == text
    assert drop_block(drop_block(put, OTHER.name), OURS.name) == before + after
    assert drop_block(text, "nobody") == text


def test_put_block__changes_an_entry_where_it_stands():
    text = put_block(put_block("# mine\n", OURS), OTHER)
    changed = put_block(text, Block(OURS.name, OURS.title, ("0 4 * * * run",)))
    assert [block.name for block in find_blocks(changed)] == [OURS.name, OTHER.name]
    assert changed == text.replace("#SCRON --time=5\n0 3", "0 4")


def test_put_block__ends_the_last_line_that_cron_would_refuse():
    assert put_block("0 1 * * * mine", OURS) == f"0 1 * * * mine\n{OURS.text()}"


@pytest.mark.parametrize("lost", [0, -1])
def test_find_blocks__refuses_half_an_entry(lost):
    lines = OURS.text().splitlines(keepends=True)
    lines.pop(lost)
    with pytest.raises(InputError, match=r"only one of the two comments around the entry scene-1a"):
        put_block("# mine\n" + "".join(lines), OURS)


def test_lines__percent_is_escaped_and_what_cron_would_cut_is_refused():
    assert escape_percent("date +%F") == r"date +\%F"
    with pytest.raises(InputError, match=r"has 1200 characters, and cron takes 990"):
        check_lines(["x" * 1200])
    with pytest.raises(InputError, match="line break"):
        check_lines(["a\nb"])
