"""`regard check`: find the attention bug that does not crash, blame its line, prove the fix."""
