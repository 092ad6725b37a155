"""Tables of patterns."""

import re
from pathlib import Path

from gateway.runtime.patterns import late, table, words


def test_a_table_has_lines_by_headings_that_go_on_and_name_one_another(tmp_path: Path) -> None:
    text = "== pets\n# English\ncats?|dogs?\n  |birds?\nKatzen?\n\n== mine\nmy (?:{{pets}})\n"
    (tmp_path / "told.txt").write_text(text, encoding="utf-8")
    rows = table(str(tmp_path / "told.py"))
    assert rows == {"pets": ["cats?|dogs?|birds?", "Katzen?"], "mine": ["my (?:cats?|dogs?|birds?|Katzen?)"]}
    assert late(rows["pets"], re.IGNORECASE).fullmatch("KATZE")
    assert late(rows["mine"]).fullmatch("my birds")
    assert words(["a b", "c"]) == {"a", "b", "c"}
