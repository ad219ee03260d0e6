"""The HTML page, parsed, and the rich text. About two seconds."""

import io
import json
from html.parser import HTMLParser

import numpy as np
import pytest
from rich.console import Console

import minitorch as torch
from minitorch import interpret, nn
from minitorch.interpret.pictures import Palette, html_page, terminal
from minitorch.interpret.pictures.colors import segment_color
from minitorch.interpret.pictures.layout import number

VOID = {"meta", "input", "br", "img", "link"}


class Page(HTMLParser):
    """Elements with their attributes and text; complains where tags do not match."""

    def __init__(self, text):
        super().__init__()
        self.open, self.elements = [], []
        self.feed(text)
        self.close()
        assert not self.open, f"not closed: {self.open}"

    def handle_starttag(self, tag, attrs):
        element = {"tag": tag, "text": "", **dict(attrs)}
        self.elements.append(element)
        if tag not in VOID:
            self.open.append(element)

    def handle_endtag(self, tag):
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop()["tag"] == tag

    def handle_data(self, data):
        for element in self.open:
            element["text"] += data

    def find(self, **wanted):
        return [
            e for e in self.elements if all(e.get(k.rstrip("_")) == v for k, v in wanted.items())
        ]

    @property
    def data(self):
        (script,) = self.find(id="data")
        return json.loads(script["text"])


def tree_of(scores, names):
    model = nn.Linear(len(scores), 2, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([scores, [0.0] * len(scores)]))
    return interpret.agglomerate(model, torch.ones(1, len(scores)), 0, names=names)


def image_tree(channels=1):
    image = torch.zeros(1, channels, 5, 4)
    image[0, :, 1, 1:4] = 1.0
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(20 * channels, 3))
    with torch.no_grad():
        model[1].weight[0].add_(image.flatten())
    return interpret.agglomerate(model, image, 0, num_iters=2), image


NAMES = ["a", "great", "film", "it", "is", "not"]
SCORES = [0.5, 2.0, 0.1, -0.3, 0.2, -3.0]


def test_the_page_holds_every_group():
    tree = tree_of(SCORES, NAMES)
    page = Page(html_page(tree, classes=["good", "bad"], title="A title"))
    cells = page.find(class_="cell")
    assert sorted(int(cell["data-group"]) for cell in cells) == list(range(len(tree)))
    light, dark = (Palette.of((g.score for g in tree), theme=theme) for theme in ("light", "dark"))
    for cell in cells:
        group = tree[int(cell["data-group"])]
        style = dict(part.split(": ", 1) for part in cell["style"].split("; "))
        assert style["--light"] == light(group.score)
        assert style["--light-ink"] == light.ink(group.score)
        assert style["--dark"] == dark(group.score)
        assert style["--dark-ink"] == dark.ink(group.score)
        row, start, _, stop = style["grid-area"].split(" / ")
        assert (int(start), int(stop)) == (group.members[0] + 1, group.members[-1] + 2)
        # From the root in row 1 down to a line and the words below it.
        assert int(row) == (tree.height - group.level + 1 if group.level else tree.height + 2)
        assert cell["aria-label"] == f"{tree.text(group)}: {number(group.score)}"
        assert cell["text"] == "".join(NAMES[unit] for unit in group.members)
        assert cell["data-order"] == str(group.order)
        assert cell["tabindex"] == "0", "the keyboard reaches it"
    data = page.data
    assert data["classes"] == ["good", "bad"]
    assert data["target"] == 0
    for group, facts in zip(tree, data["groups"], strict=True):
        assert facts["text"] == tree.text(group)
        assert facts["score"] == pytest.approx(group.score, abs=1e-6)
        assert facts["scores"] == pytest.approx(group.scores, abs=1e-6)
        assert facts["members"] == list(group.members)
        assert facts["children"] == list(group.children)
    assert [e["text"] for e in page.find(tag="title")] == ["A title"]
    (slider,) = page.find(id="round")
    assert slider["max"] == str(max(group.order for group in tree))


def test_nothing_is_loaded_from_elsewhere():
    tree, image = image_tree()
    for text in (html_page(tree_of(SCORES, NAMES)), html_page(tree, image)):
        page = Page(text)
        assert not [e for e in page.elements if "src" in e or "href" in e]
        for word in ("http:", "https:", "@import", "url(", "fetch(", "XMLHttp"):
            assert word not in text


def test_words_cannot_break_out():
    names = ["</script><script>alert(1)</script>", '"quoted"', "a & b", "<b>"]
    tree = tree_of([1.0, -2.0, 0.5, 0.1], names)
    page = Page(html_page(tree, title="<i>"))
    assert len(page.find(tag="script")) == 2
    assert not page.find(tag="b")
    assert not page.find(tag="i", text="<i>")
    assert page.data["groups"][0]["text"] == names[0]
    leaves = {int(c["data-group"]): c["text"] for c in page.find(class_="cell")}
    assert [leaves[unit] for unit in range(4)] == names


@pytest.mark.parametrize("channels", [1, 3])
def test_the_page_of_an_image(channels, tmp_path):
    tree, image = image_tree(channels)
    text = html_page(tree, image, path=tmp_path / "new" / "page.html")
    assert (tmp_path / "new" / "page.html").read_text(encoding="utf-8") == text
    page = Page(text)
    held = page.data["image"]
    assert held["layout"] == tree.layout.tolist()
    pixels = np.array(held["pixels"])
    assert pixels.shape == ((5, 4) if channels == 1 else (5, 4, 3))
    assert (pixels[1, 1:] == 255).all()
    assert pixels[0].max() == 0
    (canvas,) = page.find(tag="canvas")
    assert canvas["aria-label"]
    cells = page.find(class_="cell")
    assert len(cells) == len(tree), "ordered along the tree, each group is one cell"
    stops = [int(cell["data-group"]) for cell in cells if "tabindex" in cell]
    assert sorted(stops) == [group.id for group in tree if group.size > 1]


def test_one_word():
    page = Page(html_page(tree_of([1.0], ["fine"])))
    assert [cell["text"] for cell in page.find(class_="cell")] == ["fine"]


def test_bad_pages():
    tree, image = image_tree()
    with pytest.raises(ValueError, match="give image="):
        html_page(tree)
    with pytest.raises(ValueError, match="1 names for 3 classes"):
        html_page(tree, image, classes=["a"])


# -- rich text -----------------------------------------------------------------------------------


def printed(what, width=100, colors=None):
    out = io.StringIO()
    console = Console(
        file=out,
        width=width,
        color_system=colors,
        force_terminal=colors is not None,
        legacy_windows=False,
    )
    console.print(what)
    return out.getvalue()


def test_words_in_rows_and_as_a_hierarchy():
    tree = tree_of(SCORES, NAMES)
    text = printed(terminal(tree))
    rows = text.splitlines()
    height = tree.height + 1
    assert rows[0].split() == NAMES, "the whole sentence on top"
    assert rows[height - 1].split() == NAMES, "the words at the bottom"
    for level, row in enumerate(reversed(rows[:height])):
        expected = [unit for group in tree if group.level == level for unit in group.members]
        assert row.split() == [NAMES[unit] for unit in sorted(expected)]
    hierarchy = rows[height + 1 :]
    assert len(hierarchy) == len(tree)
    for group in tree:
        lines = [row for row in hierarchy if row.endswith(f" {tree.text(group)}")]
        assert any(number(group.score) in row for row in lines)
    bars = {row.split()[-1]: row.count("▇") - row.count("▁") for row in hierarchy}
    assert bars["not"] == -12, "the strongest has the longest bar, low for negative"
    assert "\x1b" not in text


def test_colours_of_the_rows():
    tree = tree_of(SCORES, NAMES)
    palette = Palette.of((group.score for group in tree), theme="dark")
    text = printed(terminal(tree), colors="truecolor")
    for leaf in tree.leaves:
        red, green, blue = (int(palette(leaf.score)[at : at + 2], 16) for at in (1, 3, 5))
        assert f"48;2;{red};{green};{blue}m {NAMES[leaf.id]} " in text


def test_a_narrow_terminal_has_the_hierarchy_only():
    tree = tree_of(SCORES, NAMES)
    rows = printed(terminal(tree, width=20)).splitlines()
    assert len(rows) == len(tree)


def test_an_image_beside_its_segments():
    tree, image = image_tree()
    text = printed(terminal(tree, image), colors="truecolor")
    rows = text.splitlines()
    assert [row.count("▀") for row in rows[:3]] == [8, 8, 8], "two images of 4, 5 rows in 3 lines"
    red, green, blue = (int(segment_color(1)[at : at + 2], 16) for at in (1, 3, 5))
    assert f"{red};{green};{blue}" in text
    assert "round" in text
    assert "20 units" in text
    assert len(printed(terminal(tree)).splitlines()) == sum(group.size > 1 for group in tree)
