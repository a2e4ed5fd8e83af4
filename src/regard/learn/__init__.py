"""Lessons from the bottleneck to the transformer: every number in them is computed.

A lesson is one file, ``lessons/NN-name.md``: Markdown that the documentation site, the pages of
``regard learn`` and GitHub all show. Who owns what:

- :mod:`~regard.learn.catalog` reads the lessons and says in which order they come;
- :mod:`~regard.learn.fences` finds the blocks of a lesson and what each is for;
- :mod:`~regard.learn.execute` runs a lesson's blocks in one namespace, in a folder of its own;
- :mod:`~regard.learn.compare` says where a lesson prints something else than what ran;
- :mod:`~regard.learn.rewrite` puts what ran into the lesson, so that no number is typed;
- :mod:`~regard.learn.figures` has the interactive figures, :mod:`~regard.learn.quiz` the
  questions, :mod:`~regard.learn.script` the script of a page that starts both;
- :mod:`~regard.learn.diagrams` draws the diagrams, :mod:`~regard.learn.mathml` the equations;
- :mod:`~regard.learn.html`, :mod:`~regard.learn.page` and :mod:`~regard.learn.site` make pages
  that open from disk without a request, with what an installed package has.

Blocks of a lesson, by the words after the fence:

=================================== ========================================================
``python``                          runs; what it prints stands in a ``text`` fence below it
``python raises``                   must raise an error of regard, which stands below it
``python within=0.1``               runs; numbers in its output may differ by so much, since
                                    training is not the same on every processor
``python figure=NAME``              the last expression is an SVG, saved as figures/NAME.svg
``python file=NAME.py``             is written to the lesson's folder for later blocks
``console``                         ``$ regard ...`` runs; what it prints follows in the block
``{interactive} NAME``              a figure of figures/NAME.js; the block is what stands
                                    there without scripts
=================================== ========================================================
"""
