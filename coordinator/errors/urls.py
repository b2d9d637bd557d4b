"""How error messages show a url: without its secrets."""

from urllib.parse import urlsplit


def redacted(url: str) -> str:
    """The url without user, password and query, safe to show; `(url not shown)` if its parts are not certain.

    An `@` behind the host means that the password holds an unescaped `/`, `?` or `#`: what looks like
    host and path are pieces of it then.
    """
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        return "(url not shown)"
    if "@" in parts.path + parts.query + parts.fragment or not (host or parts.scheme == "unix"):
        return "(url not shown)"
    host = f"[{host}]" if ":" in host else host
    return f"{parts.scheme}://{host}{'' if port is None else f':{port}'}{parts.path}"
