"""The web application of `coop-kafka ui`: one page, and the JSON and SVG that it asks for. Only reads.

    /                                              the page
    /static/{file}                                 its script and its style
    /api/groups                                    names
    /api/group?group=                              `facts.overview`, and the lag over time
    /api/events?group=                             the last events
    /api/owner?group=&topic=&key=                  the owner of a key
    /api/picture?group=&topic=&partition=          the plane of a partition, as SVG

Names travel as query parameters: a group's name may hold any character. Runs in threads of the ASGI server.
"""

from collections.abc import Callable, Collection
from dataclasses import asdict
from importlib.resources import files
from typing import Any

from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.middleware.trustedhost import TrustedHostMiddleware
from starlette.requests import Request
from starlette.responses import JSONResponse, Response
from starlette.routing import Route

from coordinator.errors import CoopKafkaError, InvalidOptionError, StoreError
from coordinator.tools.operations.key_owner import key_owners
from coordinator.tools.operations.picture import PictureTexts, draw
from coordinator.tools.operations.plane import chosen, plane
from coordinator.tools.operations.waiting_views import EventView
from coordinator.tools.page import facts
from coordinator.tools.page.looks import Looks
from coordinator.values.ranges import is_number

STATIC = {"page.js": "text/javascript", "page.css": "text/css"}
POLICY = "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; connect-src 'self'; img-src data:"
"""The browser loads nothing from elsewhere, and runs no script but ours. A picture has its style inside."""

HEADERS = {
    "Content-Security-Policy": f"{POLICY}; frame-ancestors 'none'",
    "X-Content-Type-Options": "nosniff",
    "Referrer-Policy": "no-referrer",
    "Cache-Control": "no-store",
}
_UNAVAILABLE, _REFUSED = 503, 404

PageQuestion = Callable[[Looks, Request], Response]


def application(looks: Looks, hosts: Collection[str]) -> Starlette:
    """The application. `hosts`: the names under which browsers may reach it (DNS rebinding); `*` for all."""
    api = {"groups": _groups, "group": _group, "events": _events, "owner": _owner, "picture": _picture}
    routes = [Route("/", lambda _: _file("page.html", "text/html"))]
    routes += [Route(f"/static/{name}", _serving(name, kind)) for name, kind in STATIC.items()]
    routes += [Route(f"/api/{name}", _answering(question, looks)) for name, question in api.items()]
    return Starlette(routes=routes, middleware=[Middleware(TrustedHostMiddleware, allowed_hosts=[*hosts])])


def _serving(name: str, kind: str) -> Callable[[Request], Response]:
    return lambda _: _file(name, kind)


def _file(name: str, kind: str) -> Response:
    return Response((files("coordinator.tools.page") / name).read_bytes(), headers=HEADERS, media_type=kind)


def _answering(question: PageQuestion, looks: Looks) -> Callable[[Request], Response]:
    def answered(request: Request) -> Response:
        try:
            return question(looks, request)
        except CoopKafkaError as error:
            status = _UNAVAILABLE if isinstance(error, StoreError) and error.retriable else _REFUSED
            return _json({"error": error.headline, "remedy": error.remedy}, status)

    return answered


def _json(value: Any, status: int = 200) -> Response:
    return JSONResponse(value, status, HEADERS)


def _asked(request: Request, name: str) -> str:
    value: str = request.query_params.get(name, "")
    if not value:
        raise InvalidOptionError(f"the address has no {name}", f"add {name}= to it")
    return value


def _groups(looks: Looks, _: Request) -> Response:
    return _json(looks.groups())


def _group(looks: Looks, request: Request) -> Response:
    group = _asked(request, "group")
    return _json(facts.overview(looks.of(group)) | {"lags": looks.lags(group)})


def _events(looks: Looks, request: Request) -> Response:
    return _json([asdict(EventView.of(event)) for event in looks.events(_asked(request, "group"))])


def _owner(looks: Looks, request: Request) -> Response:
    group, topic, key = (_asked(request, name) for name in ("group", "topic", "key"))
    state, data = looks.of(group).state, key.encode()
    return _json([asdict(found) for found in key_owners(state, topic, data)])


def _picture(looks: Looks, request: Request) -> Response:
    group, topic, number = (_asked(request, name) for name in ("group", "topic", "partition"))
    if not is_number(number):
        raise InvalidOptionError(f"partition={number!r:.40} is no number", "give the number of a partition")
    look = looks.of(group)
    seen = plane(look.state, chosen(look.state, topic, int(number)), look.failing)
    words = PictureTexts(str(seen.tp), f"Lag {seen.lag:,}, lanes: {len(seen.lanes)}.", "furthest behind")
    return Response(draw(seen, words), headers=HEADERS, media_type="image/svg+xml")
