"""The same mathematics, faster: PyTorch code behind the modules of :mod:`regard.nn`.

Nothing here checks its arguments; the modules do, once, at the door.
"""
