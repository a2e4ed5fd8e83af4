"""The check asked of attention that people use: what it says, and which of it is true."""
