"""The rooms of the comparison in `zoneout.py`.

==================  ==============================================================================
``plan.py``         which runs there are, their names and their commands
``pool.py``         running them, several at a time, so that an interruption costs little
``gradients.py``    how far a gradient reaches back, with each method: a program of its own
``tables.py``       what the runs came to: means, deviations, Markdown
``pictures.py``     learning curves and gradients as PNG files
==================  ==============================================================================
"""
