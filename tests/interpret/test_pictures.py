"""Figures by what they hold: texts, colours, places. About eight seconds."""

import itertools

import numpy as np
import pytest

import minitorch as torch
from minitorch import interpret, nn
from minitorch.interpret.pictures import Palette, comparison, image_panels, sentence_tree
from minitorch.interpret.pictures.colors import contrast, luminance, rgb, segment_color
from minitorch.interpret.pictures.layout import cells, columns, leaf_order, number, runs
from minitorch.interpret.pictures.segments import brightness, chosen, history

FigureCanvasAgg = pytest.importorskip("matplotlib.backends.backend_agg").FigureCanvasAgg


def word_tree(scores, names=None, **options):
    """The tree of a linear model over features: a group's score is the sum of its units'."""
    model = nn.Linear(len(scores), 2, bias=False)
    with torch.no_grad():
        model.weight.copy_(torch.tensor([scores, [0.0] * len(scores)]))
    names = names or [f"w{at}" for at in range(len(scores))]
    return interpret.agglomerate(model, torch.ones(1, len(scores)), 0, names=names, **options)


def image_tree(size=6, block=1, **options):
    """A tree over an image of two bright strokes, each of which a linear model likes."""
    image = torch.zeros(1, 1, size, size)
    image[0, 0, 1, 1:4] = 1.0
    image[0, 0, 4, 2:5] = 0.5
    torch.manual_seed(0)
    model = nn.Sequential(nn.Flatten(), nn.Linear(size * size, 3))
    with torch.no_grad():
        model[1].weight.copy_(0.01 * torch.randn(3, size * size))
        model[1].weight[0].add_(image.flatten())
    return interpret.agglomerate(model, image, 0, block=block, **options), image


def save(figure, tmp_path):
    """Figures are only laid out when they are drawn."""
    figure.savefig(tmp_path / "figure.png", dpi=60)
    assert (tmp_path / "figure.png").stat().st_size > 1000
    return figure


# -- colours -------------------------------------------------------------------------------------


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_palette_is_symmetric_blue_for_and_red_against(theme):
    palette = Palette(2.0, theme)
    for score in (0.4, 1.0, 2.0):
        red, _, blue = rgb(palette(score))
        assert blue > red + 0.1
        red, _, blue = rgb(palette(-score))
        assert red > blue + 0.1
    assert palette(2.0) == palette(50.0)
    assert palette(-2.0) == palette(-50.0)
    red, green, blue = rgb(palette(0.0))
    assert max(red, green, blue) - min(red, green, blue) < 0.03, "zero has no hue"
    # The stronger, the farther from the background, at the same pace on both sides.
    ground = luminance(palette.theme.background)
    for sign in (1, -1):
        away = [abs(luminance(palette(sign * score)) - ground) for score in np.linspace(0, 2, 9)]
        assert (np.diff(away) > 0).all()


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_text_is_readable_on_every_colour(theme):
    palette = Palette(1.0, theme)
    for score in np.linspace(-1, 1, 201):
        assert contrast(palette(score), palette.ink(score)) >= 4.5
    if theme == "light":
        assert palette.ink(1.0) == palette.ink(-1.0) == "#ffffff", "white on dark"
        assert palette.ink(0.0) == "#000000"


def color_blind(color, kind):
    """What a colour looks like without one kind of cones (Viénot, Brettel, Mollon 1999)."""
    linear = np.array(rgb(color)) ** 2.2
    matrices = {
        "protan": [[0.11238, 0.88762, 0], [0.11238, 0.88762, 0], [0.00401, -0.00401, 1]],
        "deutan": [[0.29275, 0.70725, 0], [0.29275, 0.70725, 0], [-0.02234, 0.02234, 1]],
    }
    return np.clip(np.array(matrices[kind]) @ linear, 0, 1) ** (1 / 2.2)


@pytest.mark.parametrize("theme", ["light", "dark"])
@pytest.mark.parametrize("kind", ["protan", "deutan"])
def test_signs_differ_for_colour_blind_readers(kind, theme):
    palette = Palette(1.0, theme)
    for score in (0.25, 0.5, 0.75, 1.0):
        good, bad = color_blind(palette(score), kind), color_blind(palette(-score), kind)
        # What these readers see of hue is yellow against blue.
        assert (good[2] - good[0]) - (bad[2] - bad[0]) > 0.1


def test_an_array_of_scores_has_the_colours_of_each():
    palette = Palette(3.0)
    scores = np.array([[-3.0, -0.5], [0.0, 2.2]])
    got = palette.array(scores)
    assert got.shape == (2, 2, 3)
    for place in np.ndindex(2, 2):
        np.testing.assert_allclose(got[place], rgb(palette(scores[place])), atol=1 / 255)


def test_segments_have_21_distinct_colours():
    colors = [segment_color(name) for name in range(1, 22)]
    assert len(set(colors)) == 21
    assert segment_color(22) == colors[0]


def test_bad_palettes():
    with pytest.raises(ValueError, match="theme must be one of light, dark, not 'grey'"):
        Palette(1.0, "grey")
    with pytest.raises(ValueError, match="limit must be a finite number from 0 up"):
        Palette(float("nan"))
    assert Palette.of([]).limit == 1.0, "nothing to scale by"


# -- layout --------------------------------------------------------------------------------------


def test_numbers_and_runs():
    assert [number(score) for score in (0.0, -0.004, 2.389, -123.4)] == [
        "+0.00",
        "-0.00",
        "+2.39",
        "-123",
    ]
    assert runs(np.array([0, 1, 4, 6, 7])) == [(0, 2), (4, 5), (6, 8)]


def test_every_group_of_an_image_is_one_run_of_columns():
    tree, _ = image_tree()
    assert sorted(leaf_order(tree)) == list(range(36))
    assert len(cells(tree)) == len(tree)
    words = word_tree([1.0, -2.0, 3.0])
    assert columns(words) == [0, 1, 2]


def test_a_group_with_a_gap_has_two_cells():
    tree = word_tree([3.0, 0.0, 3.0], num_iters=0)
    gap = tree.find([0, 2])
    if gap is None:  # whatever the rounds make of it, a tree from a file may hold such a group
        data = tree.to_dict()
        data["groups"] = [
            *data["groups"][:3],
            {**data["groups"][0], "members": [0, 2], "children": [0, 2], "order": 1, "level": 1},
            {**data["groups"][-1], "children": [3, 1], "order": 2, "level": 2},
        ]
        tree = interpret.Tree.from_dict(data)
    spans = [(cell.start, cell.stop) for cell in cells(tree) if cell.group.members == (0, 2)]
    assert spans == [(0, 1), (2, 3)]
    assert tree.text(tree.find([0, 2])) == "w0 ... w2"


# -- the sentence tree ---------------------------------------------------------------------------


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_the_sentence_tree_shows_every_group(theme, tmp_path):
    names = ["a", "great", "cast", "can't", "save", "it"]
    tree = word_tree([0.5, 2.0, 1.0, -3.0, -0.5, -0.2], names)
    figure = save(sentence_tree(tree, theme=theme, title="a title"), tmp_path)
    axes = figure.axes[0]
    palette = Palette.of((group.score for group in tree), theme=theme)
    assert palette.limit == max(abs(group.score) for group in tree)
    boxes = {box.get_gid(): box for box in axes.patches}
    assert len(boxes) == len(tree)
    texts = [(text.get_text(), text.get_position(), text.get_color()) for text in axes.texts]
    for group in tree:
        box = boxes[f"group-{group.id}"]
        np.testing.assert_allclose(box.get_facecolor()[:3], rgb(palette(group.score)), atol=1 / 255)
        left, bottom = box.get_xy()
        inside = [
            (text, color)
            for text, (x, y), color in texts
            if left <= x <= left + box.get_width() and bottom <= y <= bottom + box.get_height()
        ]
        assert [text for text, _ in inside] == [
            *(names[unit] for unit in group.members),
            number(group.score),
        ]
        assert {color for _, color in inside} == {palette.ink(group.score)}
        assert group.level <= bottom < group.level + 1
    assert len(texts) == sum(group.size + 1 for group in tree)
    (line,) = axes.lines
    assert line.get_ydata()[0] == 1.0, "the thick line lies between words and phrases"
    assert line.get_linewidth() >= 2
    bar = figure.axes[1]
    assert bar.get_ylabel() == "CD score"
    assert bar.get_ylim() == pytest.approx((-palette.limit, palette.limit))
    assert axes.get_title(loc="left") == "a title"


def test_thirty_words_fit(tmp_path):
    """Words stay inside their columns, do not touch, and letters are large enough to be read."""
    rng = np.random.default_rng(0)
    names = ["".join(rng.choice(list("aeionrst"), rng.integers(1, 12))) for _ in range(30)]
    tree = word_tree(rng.standard_normal(30).round(2).tolist(), names)
    figure = save(sentence_tree(tree), tmp_path)
    axes = figure.axes[0]
    assert figure.get_size_inches()[0] <= 18
    renderer = FigureCanvasAgg(figure).get_renderer()
    for row in range(tree.height + 1):
        spans = sorted(
            (box.x0, box.x1)
            for text in axes.texts
            if text.get_text() in names and row <= text.get_position()[1] < row + 1
            for box in [text.get_window_extent(renderer)]
        )
        assert all(a[1] < b[0] for a, b in itertools.pairwise(spans)), "words overlap"
    assert min(text.get_fontsize() for text in axes.texts if text.get_text() in names) >= 7


def test_one_word_and_no_scores(tmp_path):
    tree = word_tree([1.5], ["good"])
    figure = save(sentence_tree(tree, scores=False, width=3.0, limit=3.0), tmp_path)
    assert [text.get_text() for text in figure.axes[0].texts] == ["good"]
    assert figure.get_size_inches()[0] == 3.0
    np.testing.assert_allclose(
        figure.axes[0].patches[0].get_facecolor()[:3], rgb(Palette(3.0)(1.5)), atol=1 / 255
    )


def test_a_tree_over_a_plane_is_no_sentence():
    tree, _ = image_tree()
    with pytest.raises(ValueError, match="lie in \\(6, 6\\); draw it with image_panels"):
        sentence_tree(tree)
    with pytest.raises(ValueError, match="width must be positive"):
        sentence_tree(word_tree([1.0, 2.0]), width=-1)


# -- image panels --------------------------------------------------------------------------------


def test_panels_show_the_segments_of_the_record(tmp_path):
    tree, image = image_tree(num_iters=3)
    figure = save(image_panels(tree, image, classes=["x", "y", "z"], panels=3), tmp_path)
    found = chosen(history(tree), 3)
    top, bottom = figure.axes[: len(found) + 1], figure.axes[len(found) + 1 :]
    np.testing.assert_allclose(top[0].images[0].get_array(), image.numpy()[0, 0])
    for axes, below, each in zip(top[1:], bottom[1:], found, strict=True):
        assert axes.get_title() == f"round {each.order}"
        over = np.asarray(axes.images[1].get_array())
        assert over.shape == (6, 6, 4)
        np.testing.assert_array_equal(over[..., 3] > 0, each.labels > 0)
        for name in each.scores:
            expected = rgb(segment_color(name))
            got = over[each.labels == name][:, :3]
            np.testing.assert_allclose(got, np.tile(expected, (len(got), 1)))
        assert {text.get_text() for text in axes.texts} == {str(name) for name in each.scores}
        heights = {}
        for bar in below.patches:
            heights.setdefault(bar.get_facecolor()[:3], []).append(bar.get_height())
        for name, scores in each.scores.items():
            if rgb(segment_color(name)) in heights:
                np.testing.assert_allclose(heights[rgb(segment_color(name))], scores)
    logits = [bar.get_height() for bar in bottom[0].patches]
    np.testing.assert_allclose(logits, tree.logits)
    labels = bottom[0].get_xticklabels()
    assert [label.get_text() for label in labels] == ["x", "y", "z"]
    assert labels[0].get_fontweight() == "bold"
    assert len({below.get_ylim() for below in bottom[1:]}) == 1, "rounds share one scale"


def test_segments_keep_their_numbers_and_grow():
    tree, _ = image_tree(num_iters=3)
    rounds = history(tree)
    assert len(rounds) >= 2
    for before, after in itertools.pairwise(rounds):
        assert ((after.labels > 0) | (before.labels == 0)).all(), "nothing is unpicked"
        for name in before.scores:  # it keeps its number, or joins one with a smaller number
            (then,) = np.unique(after.labels[before.labels == name])
            assert then == name or (then < name and then in before.scores)


def test_a_tree_from_a_file_has_panels_too(tmp_path):
    tree, image = image_tree(num_iters=3)
    tree.save(tmp_path / "tree.json")
    loaded = interpret.Tree.load(tmp_path / "tree.json")
    assert not loaded.steps
    for each in history(loaded):
        for name, scores in each.scores.items():
            units = np.unique(tree.layout[each.labels == name]).tolist()
            np.testing.assert_allclose(tree.find(units).scores, scores)
    save(image_panels(loaded, image, panels=2), tmp_path)


@pytest.mark.parametrize("shape", [(6, 6), (1, 6, 6), (3, 6, 6), (1, 1, 6, 6)])
def test_images_of_any_range(shape):
    pixels = brightness(5 + np.arange(np.prod(shape), dtype=float).reshape(shape), (6, 6))
    assert pixels.shape == ((6, 6, 3) if shape[0] == 3 else (6, 6))
    assert (pixels.min(), pixels.max()) == (0.0, 1.0)
    assert (brightness(np.full((6, 6), 7.0), (6, 6)) == 0).all()


def test_images_that_do_not_fit():
    tree, image = image_tree()
    with pytest.raises(ValueError, match=r"the image is \(4, 4\), and the tree's units lie in"):
        image_panels(tree, np.zeros((4, 4)))
    with pytest.raises(ValueError, match=r"expected one image .* got an array \(2, 6, 6\)"):
        image_panels(tree, np.zeros((2, 6, 6)))
    with pytest.raises(ValueError, match="2 names for 3 classes"):
        image_panels(tree, image, classes=["a", "b"])
    with pytest.raises(ValueError, match="words are drawn with sentence_tree"):
        image_panels(word_tree([1.0, 2.0]), image)
    with pytest.raises(ValueError, match="at least one panel"):
        image_panels(tree, image, panels=0)


# -- comparisons ---------------------------------------------------------------------------------

FOUR = ("cd", "occlusion", "build_up", "integrated_gradients")


def test_methods_side_by_side_on_an_image(tmp_path):
    trees = {}
    for method in FOUR:
        trees[method], image = image_tree(block=2, method=method, num_iters=2)
    figure = save(comparison(trees, image, panels=2, theme="dark", title="four"), tmp_path)
    rows = len(figure.axes) // 4
    labels = [figure.axes[row * rows].get_ylabel() for row in range(4)]
    assert labels == ["contextual\ndecomposition", "occlusion", "build-up", "integrated\ngradients"]
    # The map of single units, in the row's own palette.
    flat = np.array([leaf.score for leaf in trees["cd"].leaves])[trees["cd"].layout]
    palette = Palette.of(flat.ravel(), theme="dark")
    np.testing.assert_allclose(figure.axes[1].images[0].get_array(), palette.array(flat))
    assert figure._suptitle.get_text() == "four"


def test_methods_side_by_side_on_words(tmp_path):
    trees = {method: word_tree([1.0, -2.0, 0.5], method=method) for method in FOUR}
    figure = save(comparison(trees), tmp_path)
    titles = [axes.get_title(loc="left") for axes in figure.axes[:4]]
    assert titles == ["contextual decomposition", "occlusion", "build-up", "integrated gradients"]
    for axes, tree in zip(figure.axes[:4], trees.values(), strict=True):
        assert len(axes.patches) == len(tree)


def test_comparisons_that_make_no_sense():
    tree, image = image_tree()
    with pytest.raises(ValueError, match="there are no trees"):
        comparison({})
    with pytest.raises(ValueError, match="different inputs"):
        comparison({"a": tree, "b": word_tree([1.0])})
    with pytest.raises(ValueError, match="give image="):
        comparison({"a": tree})
