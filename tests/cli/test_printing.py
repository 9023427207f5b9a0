"""Tables on the terminal."""

from hushfit.cli._printing import print_table


def test_names_and_titles_are_printed_as_they_are(capsys):
    """Square brackets are no markup, and a title is not broken at the width of its table."""
    title = "a rather long file name [red][old].json on held-out lists"
    print_table(title, ["true", "[40-50)", "[bold]"], [["[a]", "1", "2"]])
    lines = capsys.readouterr().out.splitlines()
    assert lines[0] == title
    assert "[40-50)" in lines[2]
    assert "[bold]" in lines[2]
    assert "[a]" in lines[4]


def test_a_misspelt_verb_is_told_the_one_that_was_meant(hushfit):
    refused = hushfit("evalute", "model.json")
    assert refused.code == 2
    assert "Did you mean evaluate?" in refused.err
    assert "Did you mean" not in hushfit("xyz").err
