"""A request, and the kinds of requests: each kind names one method of the edge, once.

    Release = member_call(RedisMembers.release, _members)   the kind: the method, and whose it is in a `World`
    Release(ranges)                    a request: a frozen value with the method's arguments, less the caller
    seen.done(Release(ranges))         the answer, of the type that the method returns

Requests are equal if they name the same method with equal arguments. `apply` calls the method.
"""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from inspect import Signature, signature
from typing import Any, Concatenate, Generic, ParamSpec, TypeVar

from coordinator.redis.replies import Answer, Caller

P = ParamSpec("P")
S = TypeVar("S")
T = TypeVar("T")
T_co = TypeVar("T_co", covariant=True)


@dataclass(frozen=True, slots=True, eq=False)
class Kind(Generic[P, T_co]):
    """One method of the edge, and what `turns` and `apply` must know of a call of it."""

    method: Callable[..., Any]
    part: Callable[[Any], Any]  # of a world: the object that has the method
    parameters: Signature  # of a request: without the part of the edge and the caller
    by_caller: bool = False  # the method's first argument is the caller
    of_redis: bool = False  # a verdict or an outage sends the member back to its first step
    writes: bool = False  # changes what other members or people see
    numbered: bool = False  # the main thread sends it with a number; the heartbeat thread sends it without one
    notice: bool = False  # made once: a failure is logged, and the answer is whether it succeeded
    plain: bool = False  # a function, of no part

    def __call__(self, *args: P.args, **kwargs: P.kwargs) -> "Request[T_co]":
        """A request with these arguments of the method."""
        bound = self.parameters.bind(*args, **kwargs)
        bound.apply_defaults()
        return Request(self, bound.arguments)

    @property
    def verb(self) -> str:
        """The method's name."""
        return self.method.__name__

    def of(self, world: Any) -> Callable[..., Any]:
        """The method in this world."""
        method: Callable[..., Any] = self.method if self.plain else getattr(self.part(world), self.verb)
        return method

    def __repr__(self) -> str:
        return self.method.__qualname__


@dataclass(frozen=True, slots=True)
class Request(Generic[T_co]):
    """A call of the edge, whose answer is a `T_co`."""

    kind: Kind[..., Any]
    arguments: Mapping[str, Any]

    def __repr__(self) -> str:
        return f"{self.kind}({', '.join(f'{name}={value!r}' for name, value in self.arguments.items())})"


def itself(world: Any) -> Any:
    """The world: most methods are its own."""
    return world


def function(method: Callable[P, T]) -> Kind[P, T]:
    """A call of a plain function of this process."""
    return Kind(method, itself, signature(method), plain=True)


def call(
    method: Callable[Concatenate[S, P], T], part: Callable[[Any], S] = itself, *, writes: bool = False
) -> Kind[P, T]:
    """A call of Kafka, of the cost model or of this process; its errors end the call of Spark."""
    return Kind(method, part, _without(method, 1), writes=writes)


def redis_call(
    method: Callable[Concatenate[S, P], T], part: Callable[[Any], S] = itself, *, writes: bool = False
) -> Kind[P, T]:
    """A call of Redis that anyone may make."""
    return Kind(method, part, _without(method, 1), of_redis=True, writes=writes)


def own_call(method: Callable[Concatenate[S, Caller, P], T], part: Callable[[Any], S] = itself) -> Kind[P, T]:
    """A call of Redis by this member. Its answer renews no lease; the one to `Join` states the new lease end."""
    return Kind(method, part, _without(method, 2), by_caller=True, of_redis=True, writes=True)


def member_call(
    method: Callable[Concatenate[S, Caller, P], Answer[T]], part: Callable[[Any], S] = itself
) -> Kind[P, T]:
    """A call of Redis by this member; its answer renews the lease."""
    return Kind(method, part, _without(method, 2), by_caller=True, of_redis=True, writes=True, numbered=True)


def notice(method: Callable[Concatenate[S, P], object], part: Callable[[Any], S] = itself) -> Kind[P, bool]:
    """Something to show; the answer is whether it was shown."""
    return Kind(method, part, _without(method, 1), writes=True, notice=True)


def own_notice(method: Callable[Concatenate[S, Caller, P], object], part: Callable[[Any], S] = itself) -> Kind[P, bool]:
    """Something that this member shows of itself."""
    return Kind(method, part, _without(method, 2), by_caller=True, writes=True, notice=True)


def once(kind: Kind[P, Any]) -> Kind[P, bool]:
    """The same, made once, of a member that leaves: no outage is waited for."""
    return replace(kind, of_redis=False, notice=True)


def _without(method: Callable[..., Any], first: int) -> Signature:
    """The parameters of a request: the method's, without the `first` ones."""
    return Signature(list(signature(method).parameters.values())[first:])
