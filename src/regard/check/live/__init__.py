"""What :func:`regard.watch` sees of the user's own run: operations, frames, names of sizes."""
