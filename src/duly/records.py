"""Records: small immutable values with distinct types.

`@record` turns a class with annotations into one with slots, an initialiser, equality by type and fields, and a repr:
what `dataclass(frozen=True, slots=True)` gives, without the import, which costs the wrapper a third of its start.
To a type checker it is a dataclass.
"""

from __future__ import annotations

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any, TypeVar, dataclass_transform

    T = TypeVar("T")

    @dataclass_transform(frozen_default=True)
    def record(cls: type[T]) -> type[T]: ...

    def replace(value: T, **changes: Any) -> T: ...

else:
    from _operator import attrgetter  # the module `operator` is this one and more

    def record(cls):
        """Make the class a record: fields in order of its annotations, class attributes as defaults."""
        names = tuple(cls.__annotations__)
        defaults = {name: cls.__dict__[name] for name in names if name in cls.__dict__}
        body = {k: v for k, v in cls.__dict__.items() if k not in defaults and k not in ("__dict__", "__weakref__")}
        body.update(__slots__=names, __match_args__=names)
        made = type(cls)(cls.__name__, cls.__bases__, body)
        setters = tuple(made.__dict__[name].__set__ for name in names)
        fields = attrgetter(*names) if names else type  # one name gives the value itself, which compares as well

        def __init__(self, *values, **named):
            if len(values) != len(names):
                missing = [n for n in names[len(values) :] if n not in named and n not in defaults]
                extra = [n for n in named if n not in names[len(values) :]]
                if missing or extra or len(values) > len(names):
                    raise TypeError(f"{cls.__name__} takes {', '.join(names)}; missing {missing}, unexpected {extra}")
                values += tuple(named[n] if n in named else defaults[n] for n in names[len(values) :])
            elif named:
                raise TypeError(f"{cls.__name__} takes {', '.join(names)}; unexpected {list(named)}")
            for set_field, value in zip(setters, values, strict=True):
                set_field(self, value)

        def __setattr__(self, name, value):
            raise AttributeError(f"{cls.__name__} is immutable")

        def __eq__(self, other):
            return type(self) is type(other) and fields(self) == fields(other)

        def __hash__(self):
            return hash(fields(self))

        def __repr__(self):
            return f"{cls.__name__}({', '.join(f'{n}={getattr(self, n)!r}' for n in names)})"

        def __reduce__(self):
            return type(self), tuple(getattr(self, n) for n in names)

        for method in (__init__, __setattr__, __eq__, __hash__, __repr__, __reduce__):
            if method.__name__ not in cls.__dict__:
                setattr(made, method.__name__, method)
        return made

    def replace(value, **changes):
        """A copy of a record with some fields changed."""
        names = type(value).__slots__
        return type(value)(**{n: changes.pop(n) if n in changes else getattr(value, n) for n in names}, **changes)
