"""``python -m regard``: the command line."""

from regard.cli.main import main

main()
