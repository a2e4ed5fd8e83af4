"""The style of the report page: light and dark, screen and paper, no font from elsewhere."""

from regard.alignment.colors import LIGHT, NIGHT, variables

__all__ = ["PAGE", "SNIPPET"]

_NEUTRAL = ("paper", "ink", "quiet", "grid", "band")
_LIGHT = {
    **{name: LIGHT[name] for name in _NEUTRAL},
    "error": "#b42318",
    "warning": "#8a5a00",
    "note": "#175cd3",
    "plus": "#116329",
    "minus": "#b42318",
}
_NIGHT = {
    **{name: NIGHT[name] for name in _NEUTRAL},
    "error": "#ff8a80",
    "warning": "#f2c14e",
    "note": "#84b6ff",
    "plus": "#7ee2a8",
    "minus": "#ff8a80",
}


PAGE = f"""
:root {{ color-scheme: light dark; {variables(_LIGHT)} }}
@media (prefers-color-scheme: dark) {{ :root {{ {variables(_NIGHT)} }} }}
@media print {{ :root {{ color-scheme: light; {variables(_LIGHT)} }} }}
@page {{ size: A4; margin: 16mm; }}
* {{ box-sizing: border-box; }}
body {{ margin: 0 auto; padding: 1.5rem; max-width: 60rem; background: var(--paper);
  color: var(--ink); font: 16px/1.5 system-ui, sans-serif; overflow-wrap: anywhere; }}
a {{ color: inherit; }}
h1 {{ font-size: 1.5rem; }} h2 {{ font-size: 1.2rem; margin-top: 2rem; }}
h3 {{ font-size: 1rem; margin-bottom: 0.25rem; }}
pre, code, .mono {{ font-family: ui-monospace, monospace; font-size: 0.85rem; }}
pre {{ background: var(--band); padding: 0.75rem; overflow-x: auto; border-radius: 4px; }}
table {{ border-collapse: collapse; margin: 0.5rem 0; font-size: 0.9rem; }}
caption {{ text-align: left; color: var(--quiet); white-space: nowrap; }}
th {{ white-space: nowrap; }}
th, td {{ border-bottom: 1px solid var(--grid); padding: 0.2rem 0.8rem 0.2rem 0;
  text-align: left; vertical-align: top; }}
td.number {{ font-variant-numeric: tabular-nums; text-align: right; }}
figure {{ margin: 1rem 0; break-inside: avoid; overflow-x: auto; }}
figcaption {{ color: var(--quiet); }}
section.finding {{ border-left: 4px solid var(--grid); padding-left: 1rem; margin: 1.5rem 0; }}
section.error {{ border-color: var(--error); }}
section.warning {{ border-color: var(--warning); }}
section.note {{ border-color: var(--note); }}
.error > h3, .verdict.error {{ color: var(--error); }}
.warning > h3, .verdict.warning {{ color: var(--warning); }}
.note > h3, .verdict.note {{ color: var(--note); }}
.verdict {{ font-weight: bold; }}
.plus {{ color: var(--plus); }} .minus {{ color: var(--minus); }}
.side {{ display: flex; flex-wrap: wrap; gap: 2rem; }}
.quiet {{ color: var(--quiet); }}
@media print {{ body {{ padding: 0; max-width: none; font-size: 10pt; }}
  pre {{ white-space: pre-wrap; }} section, tr {{ break-inside: avoid; }} }}
""".strip()

SNIPPET = (
    "font-family: system-ui, sans-serif; font-size: 14px; line-height: 1.45; "
    "color: inherit; overflow-x: auto;"
)
"""For a notebook's cell: its own colours, and no class that could meet another's."""
