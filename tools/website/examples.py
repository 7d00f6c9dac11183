"""An extension of griffe: the examples in docstrings become blocks of code, where they stand among the sentences.

The verbs that a synthesizer leaves to its release, `@of_release(Release.sample)`, are shown as they are there.
"""

from __future__ import annotations

import re
from typing import Any

import griffe

_EXAMPLE = re.compile(r"(?:^[ \t]*>>> .*\n?(?:^[ \t]*\S.*\n?)*)+", re.MULTILINE)
_OF_RELEASE = re.compile(r"of_release\((\w+)\.(\w+)\)")


def with_blocks(text: str) -> str:
    """A docstring whose examples are fenced."""

    def fenced(match: re.Match[str]) -> str:
        indent = re.match(r"[ \t]*", match[0])[0]  # type: ignore[index]  # it matches the empty string too
        return f"{indent}```pycon\n{match[0].rstrip()}\n{indent}```\n"

    return _EXAMPLE.sub(fenced, text)


class FencedExamples(griffe.Extension):
    """Fences the examples of every docstring, and shows verbs of releases where synthesizers have them too."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Fence those of one object."""
        if obj.docstring is not None:
            obj.docstring.value = with_blocks(obj.docstring.value)

    def on_package(self, *, pkg: griffe.Module, loader: griffe.GriffeLoader, **_: Any) -> None:
        """Show the verbs that releases answer as they are there."""
        kinds = [kind for module in [pkg, *_modules(pkg)] for kind in module.classes.values() if not kind.is_alias]
        for shown in [method for kind in kinds for method in kind.functions.values() if not method.is_alias]:
            for decorator in shown.decorators:
                found = _OF_RELEASE.fullmatch(str(decorator.value))
                if found is not None and shown.parent is not None:
                    verb = loader.modules_collection[shown.parent.resolve(found[1])][found[2]]
                    shown.parameters, shown.returns, shown.docstring = verb.parameters, verb.returns, verb.docstring


def _modules(parent: griffe.Module) -> list[griffe.Module]:
    own = [module for module in parent.modules.values() if not module.is_alias]
    return own + [module for one in own for module in _modules(one)]
