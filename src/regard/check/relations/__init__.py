"""Relations that every right attention layer satisfies, each with a counterexample."""
