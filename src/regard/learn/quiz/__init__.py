"""Questions before, in and after each lesson, with the reason of every answer.

:mod:`~regard.learn.quiz.bank` gathers them: those of ``questions.toml``, and those that are
made anew each time, of shapes (:mod:`~regard.learn.quiz.shapes`) and of numbers
(:mod:`~regard.learn.quiz.numbers`), whose answer regard itself computes. What was answered is
kept by :mod:`~regard.learn.quiz.progress`, in the same form on the page (``quiz.js``) and in
the terminal.
"""
