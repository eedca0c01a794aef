"""Fields of a study by the names that the version before had: taken, with a note; beside the new ones refused."""

import pytest

from dbdyno.errors import UserError
from dbdyno.plan.plan import make_plan
from dbdyno.study.load import load_study

CLAIM = """\
[[reported]]
source = "a table"
metric = "seconds_real"
[[reported.claims]]
text = "the SSD is faster"
level = { device = "ssd-sata" }
baseline = { device = "hdd-7200" }
direction = "faster"
[scale.full.design]
disturbed = "note"
"""


def test_former_names_mean_the_same_and_are_noted(write_study):
    former = ("blocks = 6", 'blocks = 6\ndisturbed = "note"\nscreened = ["errors"]\n' + CLAIM)
    now = [("disturbed", "interference"), ("screened", "secondary_metrics"), ("level =", "treatment =")]
    path = write_study(former)
    old = load_study(path)
    text = path.read_text(encoding="utf-8")
    for before, after in now:
        text = text.replace(before, after)
    path.write_text(text, encoding="utf-8")
    new = load_study(path)
    assert (old.design, old.reported, old.raw) == (new.design, new.reported, new.raw)
    assert new.notes == ()
    assert [note.removeprefix(f"{path}:").split(";")[0] for note in old.notes] == [
        "22: disturbed is called interference now",
        "23: screened is called secondary_metrics now",
        "29: level is called treatment now",
    ]
    assert set(old.notes) <= set(make_plan(old).warnings())


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ('screened = ["errors", "nothing"]', ':22: design.secondary_metrics: "nothing" is not a metric'),
        ('disturbed = "note"\ninterference = "note"', ":22: design.disturbed: is unknown here"),
        ("disturbed = 3", ":22: design.interference: is 3; allowed are repeat, note"),
    ],
)
def test_a_mistake_under_a_former_name_has_its_line(write_study, lines, said):
    with pytest.raises(UserError) as refused:
        load_study(write_study(("blocks = 6", f"blocks = 6\n{lines}")))
    assert said in str(refused.value)
