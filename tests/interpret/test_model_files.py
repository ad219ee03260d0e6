"""Models in files without code, and the sentence classifier. About a second."""

import numpy as np
import pytest

import minitorch as torch
from minitorch import interpret, nn
from minitorch.datasets import Vocabulary
from minitorch.interpret.model_files import LAYERS, build, describe
from minitorch.interpret.sentence_classifier import SentenceClassifier, padded

EVERY = [
    nn.AdaptiveAvgPool2d(2),
    nn.AvgPool2d(3, 2),
    nn.BatchNorm1d(3, momentum=0.2),
    nn.BatchNorm2d(4, affine=False),
    nn.Conv1d(2, 3, 3, bias=False),
    nn.Conv2d(2, 4, (3, 1), stride=2, padding=1, groups=2),
    nn.Dropout(0.3),
    nn.Embedding(5, 3, padding_idx=0),
    nn.Flatten(1, 2),
    nn.GELU(),
    nn.Identity(),
    nn.LSTM(3, 4, 2, bidirectional=True, batch_first=True),
    nn.LayerNorm((3, 2)),
    nn.LeakyReLU(0.2),
    nn.Linear(3, 2, bias=False),
    nn.MaxPool2d(2, stride=1),
    nn.ReLU(),
    nn.Sigmoid(),
    nn.Softplus(2.0),
    nn.Tanh(),
]


def test_every_layer_of_the_table_is_rebuilt():
    assert {type(layer).__name__ for layer in EVERY} == set(LAYERS)
    for layer in [*EVERY, nn.Sequential(*EVERY[:3], nn.Sequential(nn.ReLU()))]:
        again = build(describe(layer))
        assert repr(again) == repr(layer)
        again.load_state_dict(layer.state_dict())


def test_a_model_comes_back_with_its_words(tmp_path):
    torch.manual_seed(0)
    model = SentenceClassifier(4, 3, embedding=5, hidden=6, dropout=0.5)
    vocabulary = Vocabulary(["<unk>", "good", "bad", "film"])
    path = tmp_path / "folder" / "model.pt"
    interpret.save_model(path, model, ["a", "b", "c"], vocabulary=vocabulary, data="somewhere")
    saved = interpret.load_model(path)
    assert saved.classes == ("a", "b", "c")
    assert saved.vocabulary.words == vocabulary.words
    assert saved.data == "somewhere"
    assert not saved.model.training
    text = saved.vocabulary.encode("a good film!")
    expected = model.eval()(text).detach().numpy()
    np.testing.assert_array_equal(saved.model(text).detach().numpy(), expected)


def test_what_cannot_be_described_is_not_written(tmp_path):
    class Mine(nn.Linear):
        pass

    path = tmp_path / "model.pt"
    with pytest.raises(TypeError, match="cannot hold a Mine; what it can hold: Sequential"):
        interpret.save_model(path, nn.Sequential(Mine(2, 2)), ["a", "b"])
    changed = nn.Sequential(nn.Linear(3, 2))
    changed[0].extra = nn.Linear(1, 1)
    with pytest.raises(TypeError, match="cannot be described by its layers' arguments"):
        interpret.save_model(path, changed, ["a", "b"])
    assert not path.exists()


@pytest.mark.parametrize(
    ("description", "complaint"),
    [
        (["System", {"command": "x"}], "cannot name 'System'"),
        (["Linear", {"in_features": 1, "out_features": 2, "device": "x"}], "cannot name 'Linear'"),
        (["Linear", {"in_features": 1}], "Linear: .*out_features"),
        (["SentenceClassifier", {"wrods": 3}], "SentenceClassifier: "),
        (["Linear", [1, 2]], "not the arguments of a layer"),
        ("Linear", "not a description"),
        (["Sequential", [["Linear"]]], "not a description"),
    ],
)
def test_descriptions_name_only_known_layers(description, complaint):
    with pytest.raises(ValueError, match=complaint):
        build(description)


def test_files_that_are_no_models(tmp_path):
    path = tmp_path / "file.pt"
    with pytest.raises(FileNotFoundError, match="there is no file"):
        interpret.load_model(path)
    path.write_bytes(b"nothing")
    with pytest.raises(ValueError, match="cannot be read"):
        interpret.load_model(path)
    torch.save({"states": {}}, path)
    with pytest.raises(ValueError, match="a trainer's checkpoint"):
        interpret.load_model(path)
    torch.save(nn.Linear(1, 1), path)  # pickled as a whole: would run code when read
    with pytest.raises(ValueError, match="weights_only"):
        interpret.load_model(path)


# -- the classifier ------------------------------------------------------------------------------


def test_a_batch_of_texts_reads_each_as_if_alone():
    torch.manual_seed(0)
    model = SentenceClassifier(9, 2, embedding=4, hidden=5).eval()
    texts = [[3, 1, 4], [1], [5, 8, 2, 6, 5], []]
    words, lengths = padded(texts)
    assert words.shape == (5, 4)
    assert lengths.tolist() == [3, 1, 5, 1]
    together = model(words, lengths).detach().numpy()
    for row, text in zip(together, texts, strict=True):
        alone = model(torch.tensor(text or [0]).reshape(-1, 1)).detach().numpy()[0]
        np.testing.assert_allclose(row, alone, atol=1e-6)


def test_its_parts_add_up_to_its_logits():
    torch.manual_seed(0)
    model = SentenceClassifier(9, 3, embedding=4, hidden=5).double()
    text = torch.tensor([[3], [1], [4], [1]])
    logits = model.eval()(text).detach().numpy()
    relevant, rest = interpret.cd(model, text, [[1], [0], [1], [0]])
    np.testing.assert_allclose(relevant + rest, logits, rtol=0, atol=1e-12)
    relevant, rest = interpret.cd(model, text, np.ones((4, 1)))
    np.testing.assert_allclose(relevant + rest, logits, rtol=0, atol=1e-12)
