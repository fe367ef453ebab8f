from eigenscape.base import html


def test_link__quotes_what_is_no_part_of_a_path(tmp_path):
    link = html.link(tmp_path / "a#b?c d", "a <b>")
    assert "/a%23b%3Fc%20d" in link
    assert "a &lt;b&gt;</a>" in link
