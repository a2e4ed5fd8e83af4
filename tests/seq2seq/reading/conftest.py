import pytest


@pytest.fixture
def write(tmp_path):
    """Write a file for a test."""

    def write(data: bytes | str, name: str = "data.tsv"):
        path = tmp_path / name
        path.write_bytes(data.encode() if isinstance(data, str) else data)
        return path

    return write
