"""How error messages show a url: without its secrets."""

from urllib.parse import urlsplit


def redacted(url: str) -> str:
    """The url without user, password and query, safe to show; `(url not shown)` if its parts are not certain.

    An `@` behind the host means that the password holds an unescaped `/`, `?` or `#`: what looks like
    host and path are pieces of it then.
    """
    try:
        parts = urlsplit(url)
        places = [_place(text) for text in parts.netloc.rpartition("@")[2].split(",")]
    except ValueError:
        return "(url not shown)"
    if "@" in parts.path + parts.query + parts.fragment or not (all(places) or parts.scheme == "unix"):
        return "(url not shown)"
    return f"{parts.scheme}://{','.join(places)}{parts.path}"


def _place(text: str) -> str:
    """Host and port; empty without a host."""
    parts = urlsplit(f"//{text}")
    host, port = parts.hostname or "", parts.port
    host = f"[{host}]" if ":" in host else host
    return host if port is None or not host else f"{host}:{port}"
