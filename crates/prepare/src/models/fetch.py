# Writes what a server gives to standard output: eight bytes for its length (-1: unknown), then the content.
# Arguments: the address, seconds without a byte that end it, and the name that the server hears.
# Runs as `python3 -I -c`, of any version, with the standard library alone.

import sys


def fetch(address, silence, agent):
    import base64
    import ssl
    import urllib.parse as parts
    import urllib.request as web

    context = ssl.create_default_context()
    try:
        from pip._vendor import certifi

        context.load_verify_locations(certifi.where())
    except Exception:
        pass  # The system's certificates are enough.
    # The usual opener would follow a redirect to a file or to FTP.
    opener = web.OpenerDirector()
    proxies = {kind: proxy for kind, proxy in web.getproxies().items() if kind in ("http", "https")}
    for handler in (
        web.ProxyHandler(proxies),
        web.HTTPHandler(),
        web.HTTPSHandler(context=context),
        web.UnknownHandler(),
        web.HTTPRedirectHandler(),
        web.HTTPDefaultErrorHandler(),
        web.HTTPErrorProcessor(),
    ):
        opener.add_handler(handler)
    opener.addheaders = [("User-Agent", agent)]
    split = parts.urlsplit(address)
    login, at, host = split.netloc.rpartition("@")
    request = web.Request(parts.urlunsplit(split._replace(netloc=host)))
    if at:
        # For this server alone, not for one that it redirects to.
        token = base64.b64encode(parts.unquote_to_bytes(login)).decode()
        request.add_unredirected_header("Authorization", "Basic " + token)
    answer = opener.open(request, timeout=silence)
    length = -1 if answer.length is None else answer.length
    sys.stdout.buffer.write(length.to_bytes(8, "little", signed=True))
    sys.stdout.buffer.flush()
    for chunk in iter(lambda: answer.read1(1 << 16), b""):
        sys.stdout.buffer.write(chunk)
        sys.stdout.buffer.flush()


try:
    fetch(sys.argv[1], float(sys.argv[2]), sys.argv[3])
except Exception as problem:
    # A refused connection is wrapped into an error whose words say less.
    inner = getattr(problem, "reason", None)
    words = str(inner if isinstance(inner, Exception) else problem)
    sys.exit(" ".join(words.split()) or type(problem).__name__)
