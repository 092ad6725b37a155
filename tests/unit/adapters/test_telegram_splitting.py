"""Long answers become messages that can be read one by one."""

from __future__ import annotations

import pytest

from adapters.telegram.characters import LONGEST, units
from adapters.telegram.formatting import render, split


def texts(markdown: str) -> list[str]:
    """Return the text of each message; every part of it and every text fits."""
    parts = split(markdown)
    found = [render(part).text for part in parts]
    assert all(units(part) <= LONGEST for part in parts)
    assert all(0 < units(text) <= LONGEST for text in found)
    return found


def kinds(part: str) -> list[tuple[str, str | None]]:
    return [(entity.type, entity.language) for entity in render(part).entities]


@pytest.mark.parametrize("short", ["", " ", "a", "**a**\r\n", "```\nunclosed", "\ud83d"])
def test_a_short_text_is_its_only_part_and_stays_as_it_is(short: str) -> None:
    assert split(short) == [short]


def test_a_text_that_fits_when_laid_out_is_not_cut() -> None:
    text = "word " * 800
    assert split(text) == [text]


def test_it_is_cut_between_paragraphs_and_no_heading_is_left_alone() -> None:
    markdown = "\n\n".join(f"## Heading {number}\n\n" + f"Paragraph {number}. " * 30 + "End." for number in range(20))
    parts = split(markdown)
    assert len(parts) > 2
    assert all(part.startswith("## Heading") for part in parts)
    assert "\n\n".join(parts) == markdown


def test_a_paragraph_is_cut_between_lines_then_sentences_then_words() -> None:
    lines = split("\n".join(f"line {number} has no end" for number in range(400)))
    assert all(part.startswith("line") and part.endswith("end") for part in lines)
    sentences = split(" ".join(f"Sentence {number} ends here." for number in range(400)))
    assert all(part.startswith("Sentence") and part.endswith("here.") for part in sentences)
    words = split("word " * 2_000)
    assert all(part.startswith("word") and part.endswith("word") for part in words)
    assert " ".join(words) == ("word " * 2_000).strip()


def test_chinese_is_cut_behind_its_own_full_stops() -> None:
    parts = split("".join(f"这是第{number}句话，很长。" for number in range(1_200)))
    assert all(part.startswith("这是第") and part.endswith("很长。") for part in parts)


def test_a_word_without_end_is_cut_anywhere() -> None:
    assert "".join(split("a" * 20_000)) == "a" * 20_000
    assert len(split("a" * 20_000)) == 5


@pytest.mark.parametrize("whole", ["👨‍👩‍👧‍👦", "🇩🇪", "👍🏽", "é̂", "각", "🏴\U000e0067\U000e0062\U000e007f", "2️⃣"])
def test_what_is_seen_as_one_character_is_not_torn(whole: str) -> None:
    parts = split("-" + whole * 4_000)
    assert "".join(parts) == "-" + whole * 4_000
    assert all(part.removeprefix("-").startswith(whole) and part.endswith(whole) for part in parts)


def test_one_character_longer_than_a_message_is_torn() -> None:
    assert "".join(split("e" + "\u0301" * 9_000)) == "e" + "\u0301" * 9_000


def test_code_is_closed_and_opened_again_with_its_language() -> None:
    code = "".join(f"    line({number})\n" for number in range(700))
    parts = split(f"Look:\n\n```python\n{code}```\n\nThat is it.")
    assert len(parts) > 2
    assert all(kinds(part) == [("pre", "python")] for part in parts)
    assert [part.count("```") for part in parts] == [2] * len(parts)
    shown = "\n".join(render(part).text for part in parts)
    assert shown == f"Look:\n\n{code}\nThat is it."


def test_code_of_ten_thousand_characters_in_one_line_is_cut_in_it() -> None:
    parts = split("~~~\n" + "x" * 10_000 + "\n~~~")
    assert [kinds(part) for part in parts] == [[("pre", None)]] * 3
    assert "".join(render(part).text for part in parts) == "x" * 10_000


def test_code_in_an_item_or_a_quote_goes_on_as_code() -> None:
    lines = [f"line({number})" for number in range(500)]
    for first, other in (("- ", "  "), ("> ", "> "), ("1. a\n   - ", "     ")):
        markdown = f"{first}```py\n" + "".join(f"{other}{line}\n" for line in lines) + f"{other}```\n{other}end"
        parts = split(markdown)
        assert all(("pre", "py") in kinds(part) for part in parts)
        shown = "\n".join(render(part).text for part in parts).split("\n")
        assert [line for line in shown if "line" in line] == lines
        assert "```" not in "".join(shown)


def test_indented_code_stays_code() -> None:
    parts = split("".join(f"    line {number}\n" for number in range(600)))
    assert all(kinds(part) == [("pre", None)] for part in parts)


def test_a_list_goes_on_with_the_next_number() -> None:
    parts = split("".join(f"{number}. item\n    - inner {'word ' * 20}\n" for number in range(1, 100)))
    assert [render(part).text.split(". item")[0].isdigit() for part in parts] == [True] * len(parts)
    starts = [int(render(part).text.split(".")[0]) for part in parts]
    assert starts == sorted(starts)
    assert all("\n   ◦ inner" in render(part).text for part in parts)


def test_a_list_that_is_cut_deep_inside_does_not_become_code() -> None:
    deep = (
        "- a\n  - b\n    - "
        + "long words here. " * 300
        + "\n    - c\n      more\n  - d\n    - e\n- f\n\nend "
        + "word " * 300
    )
    parts = split(deep)
    assert len(parts) > 1
    assert not any("pre" in kind for part in parts for kind in kinds(part))
    assert render(parts[-1]).text.startswith("long words here.")
    assert "• c\n   more\n• d\n   ◦ e\n• f\n\nend" in render(parts[-1]).text


def test_items_that_are_cut_from_theirs_are_items_still() -> None:
    items = "".join(f"      - item {number} of many\n        and more of it\n" for number in range(200))
    parts = split(f"- a\n  - b\n    - c\n{items}- d")
    assert len(parts) > 2
    assert not any(kinds(part) for part in parts)
    assert all(render(part).text.startswith("• item") for part in parts[1:])
    assert render(parts[-1]).text.endswith("of many\n   and more of it\n• d")


def test_a_quote_goes_on_as_a_quote() -> None:
    for markdown in ("> " + "A sentence. " * 900, "> " + "a line of it\n> " * 600, "> " + "lazy line\n" * 900):
        parts = split(markdown + "\n\nafter")
        assert len(parts) > 1
        assert all(kinds(part)[0][0].endswith("blockquote") for part in parts)


def test_a_table_goes_on_as_a_table_with_its_headers() -> None:
    rows = [f"| row {number} | {number} |" for number in range(500)]
    parts = split("\n".join(["| Name | Count |", "|:--|--:|", *rows]))
    assert all(kinds(part) == [("pre", None)] for part in parts)
    shown = [[line.split() for line in render(part).text.split("\n")] for part in parts]
    assert all(lines[0] == ["Name", "Count"] and set(*lines[1]) == {"─"} for lines in shown)
    assert [line for lines in shown for line in lines[2:]] == [["row", str(n), str(n)] for n in range(500)]


@pytest.mark.parametrize("before", ["", "> "])
def test_a_table_that_is_told_line_by_line_keeps_its_labels(before: str) -> None:
    rows = [f"{before}| {number} {'long ' * 12}| x |" for number in range(200)]
    said = texts("\n".join([f"{before}| Name | Count |", f"{before}|:--|--:|", *rows]))
    assert len(said) > 2
    for text in said:
        assert text.startswith("Name: ")
        assert text.count("Name: ") == text.count("Count: x")


def test_long_headers_are_not_repeated() -> None:
    said = texts("\n".join([f"| {'Head ' * 300}| b |", "|---|---|", *(f"| {n} | x |" for n in range(900))]))
    assert sum(text.count("Head") for text in said) >= 300


def test_bold_text_that_is_cut_is_bold_on_both_sides() -> None:
    parts = split("**" + "very " * 1_000 + "long**")
    assert [kinds(part) for part in parts] == [[("bold", None)]] * 2
    assert "*" not in "".join(texts("**" + "very " * 1_000 + "long**"))


def test_a_part_with_too_many_entities_is_cut_earlier() -> None:
    parts = split(" ".join(f"[{number}](https://x.example/{number})" for number in range(250)))
    assert [len(render(part).entities) <= 100 for part in parts] == [True] * len(parts)
    assert sum(len(render(part).entities) for part in parts) == 250


def test_a_table_that_grows_when_laid_out_is_cut_earlier() -> None:
    rows = "".join(f"| {number} | a value | another value |\n" for number in range(200))
    parts = split("| The name of a thing | A long header for it | And one more of them |\n|---|---|---|\n" + rows)
    assert all(len(texts(part)) == 1 for part in parts)
    assert all(kinds(part) for part in parts)


@pytest.mark.parametrize(
    "malice",
    [
        "- " * 3_000,
        "> " * 3_000,
        "`" * 9_000 + "\n" + "x\n" * 5_000,
        "```" + "info " * 2_000 + "\n" + "x\n" * 5_000 + "```",
        "|" * 6_000 + "\n" + "-|" * 6_000 + "\n" + "a|" * 6_000,
        "[x](" * 2_000,
        "$" * 5_000,
        "~x" * 5_000,
        "||x" * 3_000,
        "<b>" * 3_000,
        "\n" * 9_000 + "a",
        " " * 9_000 + "a",
        "&#8238;" * 2_000 + "a",
        "\\(x^2" * 2_000,
        "[^1]: " * 1_500,
    ],
)
def test_malice_is_cut_as_well(malice: str) -> None:
    assert texts(malice)


def test_nothing_but_white_space_is_one_part() -> None:
    assert len(split("\n \t" * 5_000)) == 1
