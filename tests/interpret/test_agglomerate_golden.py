"""The agglomeration in the published code's mode, step by step against its recorded runs."""

from __future__ import annotations

import numpy as np
import pytest
from interpret import acd_models
from numpy.testing import assert_allclose

import minitorch
from minitorch import interpret
from minitorch.interpret.reference import collapsed

TEXTS, IMAGES = acd_models.record("acd_agg1d"), acd_models.record("acd_agg2d")
EXACT = {"rtol": 1e-12, "atol": 1e-12}


@pytest.mark.parametrize("name", list(TEXTS))
def test_words(name):
    run = TEXTS[name]
    model = acd_models.text_model(acd_models.arrays("acd_lstm"))
    tree = interpret.agglomerate(
        model,
        minitorch.tensor(run["ids"])[:, None],
        run["label"],
        method=name.rpartition("_")[0],
        percentile=run["percentile"],
        num_iters=run["num_iters"],
        mode="reference",
    )
    raw = run["raw"]
    assert len(tree.steps) == len(raw["comps_list"])
    for number, step in enumerate(tree.steps):
        assert step.labels.tolist() == raw["comps_list"][number]
        assert step.picked.tolist() == raw["mask_list"][number]
        assert_allclose(step.priorities, np.array(raw["scores_list"][number], float), **EXACT)
        expected = {int(key): value for key, value in raw["comp_scores_list"][number].items()}
        assert {key: scores[0] - scores[1] for key, scores in step.scores.items()} == pytest.approx(
            expected, rel=1e-12, abs=1e-12
        )
    rows, scores = collapsed(tree)
    assert [row.tolist() for row in rows] == run["collapsed"]["comps_list"]
    for got, expected in zip(scores, run["collapsed"]["comp_scores_list"], strict=True):
        expected = {int(key): value for key, value in expected.items()}
        assert got == pytest.approx(expected, rel=1e-12, abs=1e-12)


@pytest.mark.parametrize("name", list(IMAGES))
def test_images(name):
    run = IMAGES[name]
    data = acd_models.arrays("acd_agg2d_model")
    model = acd_models.small_cnn(data)
    image = minitorch.tensor(data["im"])[None, None]
    assert_allclose(model(image).detach().numpy()[0], data["logits"], **EXACT)
    tree = interpret.agglomerate(
        model,
        image,
        run["label"],
        method=name.rpartition("_")[0],
        block=run["sweep_dim"],
        percentile=run["percentile"],
        num_iters=run["num_iters"],
        mode="reference",
    )
    assert len(tree.steps) == len(run["comps_list"])
    for number, step in enumerate(tree.steps):
        if number:
            assert step.labels.tolist() == np.array(run["comps_list"][number]).ravel().tolist()
        assert step.picked.tolist() == np.array(run["im_thresh_list"][number]).ravel().tolist()
        priorities = np.array(run["scores_list"][number], float).ravel()
        assert_allclose(step.priorities, priorities, **EXACT)
        expected = run["comp_scores_raw_list"][number]
        assert {str(key) for key in step.scores} == set(expected)
        for key, scores in expected.items():
            assert_allclose(step.scores[int(key)], scores, **EXACT)
    singles = np.stack([group.scores for group in tree.leaves])
    assert_allclose(singles, run["scores_orig_raw"], **EXACT)
