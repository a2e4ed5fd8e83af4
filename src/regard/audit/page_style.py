"""The style of the report page: light and dark, narrow and printed."""

__all__ = ["STYLE"]

STYLE = """
:root {
  color-scheme: light dark;
  --page: #f5f6f8; --card: #fff; --ink: #1f2328; --quiet: #59636e; --line: #d8dde3;
  --good: #1a7f4b; --bad: #b3261e; --open: #8a6100; --weight: 0, 114, 178; --effect: 213, 94, 0;
  --deepest: .65;
}
@media screen and (prefers-color-scheme: dark) {
  :root {
    --page: #0d1016; --card: #14181f; --ink: #e6e9ee; --quiet: #a3adba; --line: #333b47;
    --good: #5fd39a; --bad: #ff8a80; --open: #e8c15a; --weight: 88, 176, 238;
    --effect: 255, 158, 92; --deepest: .4;
  }
}
* { box-sizing: border-box; }
body {
  margin: 0; background: var(--page); color: var(--ink);
  font: 1rem/1.5 system-ui, -apple-system, "Segoe UI", Roboto, "DejaVu Sans", sans-serif;
}
main { max-width: 64rem; margin: 0 auto; padding: 2rem 1.25rem 4rem; }
h1 { font-size: clamp(1.5rem, 5vw, 2.1rem); line-height: 1.15; margin: 0; }
h2 { font-size: 1.25rem; margin: 2.2rem 0 .6rem; }
h3 { font-size: 1.02rem; margin: 0 0 .4rem; }
h3 small, .quiet { color: var(--quiet); font-weight: 400; }
p, ul { max-width: 48rem; }
.verdict {
  background: var(--card); border: 1px solid var(--line); border-left: .4rem solid var(--open);
  border-radius: .5rem; padding: .4rem 1.2rem 1rem; margin-top: 1.2rem;
}
.verdict h2 { margin-top: .8rem; }
.verdict.supported { border-left-color: var(--good); }
.verdict.refused { border-left-color: var(--bad); }
.claims { list-style: none; padding: 0; }
.granted b, .passed .outcome { color: var(--good); }
.refused b, .failed .outcome { color: var(--bad); }
.undecided b, .undecided .outcome { color: var(--open); }
.outcome { white-space: nowrap; font-weight: 600; }
dl { display: grid; grid-template-columns: max-content 1fr; gap: .2rem 1.25rem; }
dt { color: var(--quiet); }
dd { margin: 0; overflow-wrap: anywhere; }
.scroll { overflow-x: auto; }
table { border-collapse: collapse; width: 100%; font-variant-numeric: tabular-nums; }
th, td { padding: .3rem .6rem; text-align: right; border-bottom: 1px solid var(--line); }
th { font-weight: 600; }
thead th { color: var(--quiet); }
tbody th, .gates td, .gates th { text-align: left; vertical-align: top; }
.test, figure {
  background: var(--card); border: 1px solid var(--line); border-radius: .5rem;
  padding: .9rem 1rem; margin: 1rem 0;
}
figcaption { color: var(--quiet); font-size: .93rem; margin-bottom: .6rem; }
.tokens { display: flex; flex-wrap: wrap; gap: .35rem .25rem; }
.token { display: inline-grid; text-align: center; min-width: 2.6rem; }
.token b { font-weight: 500; padding: 0 .35rem; overflow-wrap: anywhere; }
.token.gold b { text-decoration: underline; text-underline-offset: .2em; }
.weight, .effect { font-size: .72rem; border-radius: .2rem; padding: 0 .2rem; }
.weight { background: rgba(var(--weight), calc(var(--share) * var(--deepest))); }
.effect { background: rgba(var(--effect), calc(var(--share) * var(--deepest))); }
@media (max-width: 34rem) {
  dl { grid-template-columns: 1fr; gap: 0; }
  dd { margin-bottom: .4rem; }
}
@media print {
  body { background: none; font-size: 9.5pt; }
  main { max-width: none; padding: 0; }
  .test, figure, .verdict { break-inside: avoid; }
  .weight, .effect, .verdict { print-color-adjust: exact; -webkit-print-color-adjust: exact; }
  h2, h3 { break-after: avoid; }
  .scroll { overflow: visible; }
  th, td { padding: .2rem .3rem; font-size: 8.5pt; }
}
"""
