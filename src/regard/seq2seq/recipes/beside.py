"""A result and what others have published, as a few lines of text."""

from regard.seq2seq.metrics import ErrorRates
from regard.seq2seq.recipes.recipe import Recipe

__all__ = ["beside"]


def beside(recipe: Recipe, rates: ErrorRates, *, system: str = "this model") -> str:
    """Return a table of this result and the published ones, with their sources.

    Parameters
    ----------
    recipe : Recipe
    rates : ErrorRates
        Of the recipe's test part.
    system : str
        What to call this result.
    """
    measures = [measure.name for measure in recipe.measures]
    rows = [(system, {m.name: m.of(rates) for m in recipe.measures}, "")]
    for published in recipe.published:
        said = f"{published.source}; {published.note}" if published.note else published.source
        rows.append((published.system, dict(published.values), said))
    wide = max(len(name) for name, _, _ in rows)
    columns = [max(7, len(name)) for name in measures]
    titles = (f"{name:>{n}}" for name, n in zip(measures, columns, strict=True))
    lines = [
        f"{recipe.title}, test: {rates.examples} sources, one is "
        f"{100 / rates.examples:.2f} points; percent",
        f"  {'':{wide}}  {'  '.join(titles)}",
    ]
    for name, values, said in rows:
        cells = (
            f"{values[m]:{n}.2f}" if m in values else f"{'-':>{n}}"
            for m, n in zip(measures, columns, strict=True)
        )
        lines.append(f"  {name:{wide}}  {'  '.join(cells)}  {said}".rstrip())
    if not recipe.published:
        lines.append("  no published result on this data is known")
    return "\n".join(lines)
