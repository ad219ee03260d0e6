"""Trees as pictures.

====================  ==========================================================================
``sentence_tree``     words below, growing phrases above, coloured by score (Matplotlib)
``image_panels``      segments growing over an image, their scores per class below (Matplotlib)
``comparison``        the same prediction explained by several methods (Matplotlib)
``html_page``         one interactive HTML file that needs nothing else
``terminal``          the tree as rich text
====================  ==========================================================================

Colours are those of ``colors.py``: blue for, red against, symmetric about zero, the darker (on a
dark background: the brighter) the stronger. Matplotlib is imported when a figure is asked for.
"""

from minitorch.interpret.pictures.colors import Palette, segment_color
from minitorch.interpret.pictures.comparison import comparison
from minitorch.interpret.pictures.images import image_panels
from minitorch.interpret.pictures.page import html_page
from minitorch.interpret.pictures.sentence import sentence_tree
from minitorch.interpret.pictures.terminal import terminal

__all__ = [
    "Palette",
    "comparison",
    "html_page",
    "image_panels",
    "segment_color",
    "sentence_tree",
    "terminal",
]
