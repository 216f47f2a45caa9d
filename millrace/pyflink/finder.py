"""How `import pyflink...` finds Millrace."""

from __future__ import annotations

import importlib
import os
import sys
from collections.abc import Sequence
from importlib.abc import Loader, MetaPathFinder
from importlib.machinery import ModuleSpec, PathFinder
from importlib.metadata import PackageNotFoundError, version
from types import ModuleType
from typing import Any

from millrace.errors import ConfigurationError
from millrace.pyflink.names import MODULES, NEIGHBOURS, PLACEHOLDERS, Offer
from millrace.pyflink.unavailable import placeholder

__all__ = ["PyFlinkModule", "install", "is_installed"]

ROOT = "pyflink"


def install() -> None:
    """Let `import pyflink...` give Millrace, in this process and in the workers of the jobs it starts.

    Calling it again changes nothing. Where the real PyFlink is installed, nothing is replaced: that is an error.
    """
    if is_installed():
        return
    _refuse_the_real_one()
    install_here()


def install_here() -> None:
    """As `install`, without asking whether the real PyFlink is there; workers do not choose what they have."""
    if not is_installed():
        sys.meta_path.insert(0, _Finder())


def is_installed() -> bool:
    """Whether `import pyflink` gives Millrace in this process."""
    return any(isinstance(finder, _Finder) for finder in sys.meta_path)


def _refuse_the_real_one() -> None:
    try:
        found = f"apache-flink {version('apache-flink')} is installed in this environment"
    except PackageNotFoundError:
        spec = PathFinder.find_spec(ROOT)
        if spec is None or spec.origin is None:
            return
        found = f"{spec.origin} is another package of that name"
    message = (
        f"millrace.pyflink cannot stand in for pyflink: {found}. "
        "Uninstall it, or use an environment with Millrace alone; to compare the two, keep one environment for each"
    )
    raise ConfigurationError(message)


class PyFlinkModule(ModuleType):
    """A module of PyFlink's name with Millrace's contents."""

    def __init__(self, name: str, offer: Offer) -> None:
        super().__init__(name, f"{name}, offered by Millrace.")
        self.__path__: list[str] = []
        self.__dict__["_offer"] = offer

    def __reduce__(self) -> tuple[Any, ...]:
        # A function of the program may hold the module itself; its worker has to know the name first.
        return _load, (self.__name__,)

    def __getattr__(self, name: str) -> Any:
        offer: Offer = self.__dict__["_offer"]
        if name in offer.unavailable:
            return placeholder(f"{self.__name__}.{name}", offer.unavailable[name])
        if not name.startswith("__") and offer.hint:
            return placeholder(f"{self.__name__}.{name}", offer.hint)
        found = None if name.startswith("__") or self.__name__.count(".") < 2 else _imported_there(name)
        if found is not None:
            return found
        offered = ", ".join(sorted(each for each in self.__dict__.get("__all__", ())))
        message = f"{self.__name__} has no {name!r} in Millrace; it offers {offered or 'modules only'}"
        raise AttributeError(message, name=name, obj=self)


def _imported_there(name: str) -> Any:
    """What PyFlink's modules import for themselves can be imported from them, and programs do so."""
    for neighbour in NEIGHBOURS:
        found = getattr(importlib.import_module(neighbour), name, None)
        if found is not None:
            return found
    return None


def _load(name: str) -> ModuleType:
    install_here()
    return importlib.import_module(name)


class _Finder(MetaPathFinder):
    def find_spec(
        self, fullname: str, path: Sequence[str] | None = None, target: ModuleType | None = None
    ) -> ModuleSpec | None:
        if fullname != ROOT and not fullname.startswith(f"{ROOT}."):
            return None
        offer = _offer(fullname)
        if offer is not None:
            return ModuleSpec(fullname, _AliasLoader(offer), is_package=True)
        own = _beside_us(fullname)
        if own is not None:
            return own
        message = f"No module named {fullname!r}: Millrace does not offer it. It offers {', '.join(sorted(MODULES))}"
        raise ModuleNotFoundError(message, name=fullname)


def _offer(fullname: str) -> Offer | None:
    if fullname in MODULES:
        return MODULES[fullname]
    for prefix, hint in PLACEHOLDERS.items():
        if fullname == prefix or fullname.startswith(f"{prefix}."):
            return Offer((), hint=hint)
    return None


def _beside_us(fullname: str) -> ModuleSpec | None:
    """Modules that a program keeps itself in directories of PyFlink's names, such as tests."""
    parents = fullname.split(".")[:-1]
    return PathFinder.find_spec(fullname, [os.path.join(entry or os.curdir, *parents) for entry in sys.path])


class _AliasLoader(Loader):
    def __init__(self, offer: Offer) -> None:
        self._offer = offer

    def create_module(self, spec: ModuleSpec) -> ModuleType:
        return PyFlinkModule(spec.name, self._offer)

    def exec_module(self, module: ModuleType) -> None:
        contents: dict[str, Any] = {}
        for source in reversed(self._offer.sources):
            loaded = importlib.import_module(source)
            contents.update({name: getattr(loaded, name) for name in getattr(loaded, "__all__", ())})
        for name, where in self._offer.extras.items():
            source, _, attribute = where.partition(":")
            contents[name] = getattr(importlib.import_module(source), attribute or name)
        module.__dict__.update(contents)
        module.__dict__["__all__"] = sorted(name for name in contents if not name.startswith("_"))
