"""What a program needs besides itself: Python files, archives and packages, brought to the workers with its operators.

They travel by value, ahead of the first function of a stage, so that a worker needs no shared file system for them.
"""

from __future__ import annotations

import hashlib
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

from millrace.common.configuration import Configuration
from millrace.errors import ConfigurationError

__all__ = ["Dependencies", "OperatorName"]

Preparation = Callable[[], None]

_arrived_here: set[str] = set()


class OperatorName(str):
    """An operator's name that prepares the process it is unpickled in.

    The name stands ahead of the function, which may live in a module that needs what is prepared.

    >>> import pickle
    >>> pickle.loads(pickle.dumps(OperatorName("Map", ())))
    'Map'
    """

    __slots__ = ("preparations",)
    preparations: tuple[Preparation, ...]

    def __new__(cls, name: str, preparations: tuple[Preparation, ...]) -> OperatorName:
        made = super().__new__(cls, name)
        made.preparations = preparations
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _prepared, (str(self), self.preparations)


def _prepared(name: str, preparations: tuple[Preparation, ...]) -> str:
    for prepare in preparations:
        prepare()
    return name


class Dependencies:
    """What the ``python.*`` settings of a program name. It is read when it is pickled, and arrives as a `Delivery`.

    >>> Dependencies.of(Configuration()) is None
    True
    """

    SETTINGS: Final = ("python.files", "python.archives", "python.requirements", "python.executable")

    def __init__(self, settings: dict[str, str]) -> None:
        self._settings = settings

    @classmethod
    def of(cls, configuration: Configuration) -> Dependencies | None:
        """The dependencies of a program; None if its settings name nothing."""
        named = {key: configuration.get_string(key, "") for key in cls.SETTINGS}
        return cls(named) if any(named.values()) else None

    def __call__(self) -> None:
        """Nothing: here, in the process of the program, everything is in its place."""

    def __reduce__(self) -> tuple[Any, ...]:
        files = {Path(path).name: _packed(path) for path in self._items("python.files")}
        archives = {}
        for item in self._items("python.archives"):
            path, _, target = item.partition("#")
            archives[target or Path(path).name] = (Path(path).name, _read(path))
        requirements = None
        if self._settings["python.requirements"]:
            path, _, cached = self._settings["python.requirements"].partition("#")
            packages = {each.name: each.read_bytes() for each in Path(cached).iterdir()} if cached else {}
            requirements = (_read(path).decode(), packages)
        return Delivery, (files, archives, requirements, self._settings["python.executable"] or None, os.getpid())

    def _items(self, key: str) -> list[str]:
        return [item.strip() for item in self._settings[key].split(",") if item.strip()]


class Delivery:
    """The files of a program, by value; calling it puts them in their places, once in each process."""

    def __init__(
        self,
        files: dict[str, bytes],
        archives: dict[str, tuple[str, bytes]],
        requirements: tuple[str, dict[str, bytes]] | None,
        executable: str | None,
        sender: int,
    ) -> None:
        self.files = files
        self.archives = archives
        self.requirements = requirements
        self.executable = executable
        self.sender = sender
        parts = repr((sorted(files), sorted(archives), requirements)).encode()
        contents = [*files.values(), *(content for _, content in archives.values())]
        self.digest = hashlib.blake2b(b"".join([parts, *contents]), digest_size=12).hexdigest()

    def __call__(self) -> None:
        if self.digest in _arrived_here:
            return
        place = Path(tempfile.gettempdir()) / f"millrace-dependencies-{self.digest}"
        if not place.is_dir():
            self._unpack(place)
        sys.path[:0] = [str(place / "files"), *map(str, (place / "files").glob("*.zip")), str(place / "packages")]
        if self.archives and self.sender != os.getpid():
            # Functions open what is in the archives by paths that begin with the archive's name.
            os.chdir(place / "archives")
        if self.executable:
            os.environ["python"] = self.executable
        _arrived_here.add(self.digest)

    def _unpack(self, place: Path) -> None:
        """Unpack next to the place and move there: another worker may be doing the same."""
        with tempfile.TemporaryDirectory(prefix="millrace-dependencies-") as name:
            work = Path(name)
            for part in ("files", "archives", "packages"):
                (work / part).mkdir()
            for file, content in self.files.items():
                _unpacked(work / "files" / file, content)
            for target, (archive, content) in self.archives.items():
                (work / archive).write_bytes(content)
                shutil.unpack_archive(work / archive, work / "archives" / target)
                (work / archive).unlink()
            self._install(work)
            done = work.with_name(f"{work.name}-done")
            shutil.copytree(work, done)
            try:
                os.rename(done, place)
            except OSError:
                shutil.rmtree(done, ignore_errors=True)
                if not place.is_dir():
                    raise

    def _install(self, work: Path) -> None:
        if self.requirements is None:
            return
        text, packages = self.requirements
        (work / "requirements.txt").write_text(text)
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--target", str(work / "packages")]
        if packages:
            (work / "cache").mkdir()
            for name, content in packages.items():
                (work / "cache" / name).write_bytes(content)
            command += ["--no-index", "--no-build-isolation", "--find-links", str(work / "cache")]
        done = subprocess.run(
            [*command, "-r", str(work / "requirements.txt")], capture_output=True, text=True, check=False
        )
        if done.returncode:
            message = f"set_python_requirements: the packages cannot be installed on a worker: {done.stderr.strip()}"
            raise ConfigurationError(message)


def _read(path: str) -> bytes:
    try:
        return Path(path.removeprefix("file://")).read_bytes()
    except OSError as error:
        message = f"{path}, which the program needs on its workers, cannot be read: {error}"
        raise ConfigurationError(message) from error


def _packed(path: str) -> bytes:
    """A file, or a directory as a zip of itself."""
    directory = Path(path.removeprefix("file://"))
    if not directory.is_dir():
        return _read(path)
    with tempfile.TemporaryDirectory() as work:
        return Path(shutil.make_archive(f"{work}/packed", "zip", directory.parent, directory.name)).read_bytes()


def _unpacked(path: Path, content: bytes) -> None:
    path.write_bytes(content)
    if path.suffix not in (".py", ".zip", ".egg", ".whl") and content[:2] == b"PK":
        packed = path.rename(path.with_name(f"{path.name}.zip"))
        shutil.unpack_archive(packed, path.parent)
