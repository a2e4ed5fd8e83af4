"""JavaScript modules run by Node, for tests of what needs no page."""

import json
import shutil
import subprocess
from collections.abc import Iterable
from pathlib import Path
from typing import Any

NODE = shutil.which("node")
WHY = "no Node to run the scripts with"


class Modules:
    """Copies of modules in one folder, in which code can be run that imports them."""

    def __init__(self, scripts: Iterable[Path], folder: Path) -> None:
        self._folder = folder
        for path in scripts:
            shutil.copy(path, folder)
        (folder / "package.json").write_text('{"type": "module"}')

    def run(self, code: str, *names: str, **values: Any) -> list[Any]:
        """Run code that calls ``say``, and return what it said.

        `names` are modules that it finds under their names, `values` what else it finds.
        """
        imported = "".join(f'import * as {name} from "./{name}.js";\n' for name in names)
        given = "".join(
            f"const {name} = {json.dumps(value)};\n" for name, value in values.items()
        )
        text = (
            f"{imported}const said = [];\nconst say = (value) => said.push(value);\n{given}"
            f"{code}\nconsole.log(JSON.stringify(said));\n"
        )
        (self._folder / "run.js").write_text(text, encoding="utf-8")
        assert NODE is not None
        done = subprocess.run(
            [NODE, "run.js"],
            cwd=self._folder,
            capture_output=True,
            encoding="utf-8",
            check=False,
        )
        assert done.returncode == 0, done.stderr
        said: list[Any] = json.loads(done.stdout)
        return said
