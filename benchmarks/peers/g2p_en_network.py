"""g2p-en's network, without the dictionary in which it looks words up first."""

import importlib.util
import types
from collections.abc import Callable

__all__ = ["g2p_en_network"]


def g2p_en_network() -> Callable[[str], list[str]] | None:
    """Return what answers a word with sounds and stress; None where g2p-en is not installed.

    It does not start without NLTK's ``cmudict`` corpus; an empty one takes its place, so that
    the network answers every word.
    """
    if importlib.util.find_spec("g2p_en") is None:
        return None
    import nltk  # noqa: PLC0415 - optional

    nltk.data.find = lambda *_, **__: None  # it would else try to download corpora
    nltk.corpus.cmudict = types.SimpleNamespace(dict=dict)
    from g2p_en import G2p  # noqa: PLC0415 - optional

    network = G2p()
    return lambda word: list(network.predict(word.lower()))
