"""Scripts and data that stand in a page, which may load neither from anywhere."""

import base64
import hashlib

__all__ = ["data", "policy"]


def policy(code: str = "") -> str:
    """Return the policy of a page that makes no request.

    Parameters
    ----------
    code : str
        The one script that may run, letter by letter; "" for none.
    """
    allowed = ""
    if code:
        digest = base64.b64encode(hashlib.sha256(code.encode("utf-8")).digest()).decode("ascii")
        allowed = f"script-src 'sha256-{digest}'; "
    return (
        f"default-src 'none'; {allowed}style-src 'unsafe-inline'; base-uri 'none'; "
        "form-action 'none'"
    )


def data(text: str) -> str:
    """Return JSON as it may stand in a script element.

    Only ``<`` could end the text early there; escaped it is the same character in JSON.
    """
    return text.replace("<", "\\u003c")
