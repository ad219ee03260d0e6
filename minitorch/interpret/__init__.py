"""Why did the network say that? Contributions of parts of the input, and hierarchies of them.

====================  ============================================================================
``cd``                split the logits: what a chosen part of the input contributes, and the rest
``agglomerate``       grow groups of words or pixels into a :class:`Tree` that explains a prediction
``attribute``         one score per word or pixel, by any of the methods
``save_model``        a file that ``minitorch interpret`` builds a model from, without running code
``register_rule``     how the split goes through an op or a module that has no rule yet
====================  ============================================================================
"""

from minitorch.interpret import rules
from minitorch.interpret.agglomeration import agglomerate
from minitorch.interpret.attribution import Attribution, attribute
from minitorch.interpret.comparisons import (
    coefficient_correlation,
    fgsm,
    gradient_attack,
    rank_correlation,
    robustness,
    top_class_agreement,
)
from minitorch.interpret.decompose import Decomposer, cd
from minitorch.interpret.methods import METHODS, make_scorer
from minitorch.interpret.model_files import SavedModel, load_model, save_model
from minitorch.interpret.parts import Parts
from minitorch.interpret.registry import WHOLE, register_rule
from minitorch.interpret.rules.pointwise import rectifier, smooth, whole
from minitorch.interpret.scorers import Scorer
from minitorch.interpret.sentence_classifier import SentenceClassifier
from minitorch.interpret.tree import Group, Step, Tree
from minitorch.interpret.units import Units, grid, line, segments, units_of

__all__ = [
    "METHODS",
    "WHOLE",
    "Attribution",
    "Decomposer",
    "Group",
    "Parts",
    "SavedModel",
    "Scorer",
    "SentenceClassifier",
    "Step",
    "Tree",
    "Units",
    "agglomerate",
    "attribute",
    "cd",
    "coefficient_correlation",
    "fgsm",
    "gradient_attack",
    "grid",
    "line",
    "load_model",
    "make_scorer",
    "rank_correlation",
    "rectifier",
    "register_rule",
    "robustness",
    "save_model",
    "segments",
    "smooth",
    "top_class_agreement",
    "units_of",
    "whole",
]
