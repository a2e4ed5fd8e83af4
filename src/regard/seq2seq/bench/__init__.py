"""The recipes run one after another, and their results beside the published ones."""
