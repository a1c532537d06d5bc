"""`lazulite serve`: a model behind HTTP, until the process is told to stop."""

from __future__ import annotations

from lazulite.base.terminal import say
from lazulite.llm.server import LOOPBACK, application
from lazulite.llm.service import Service
from lazulite.llm.transformer import Transformer
from lazulite.tools.progress import shown

MOST_CONNECTIONS = 256


def serve(
    model: str, *, host: str, port: int, key: str | None, slots: int, context: int | None, names: list[str]
) -> None:
    """Read a model and serve it; `names` are further names by which clients may call the server."""
    import uvicorn

    with shown(f"reading {model}"):
        transformer = Transformer.load(model, context, slots)
    service = Service(transformer)
    served = (*LOOPBACK, host, *names)
    try:
        say(f"serving {transformer.name} at http://{host}:{port} ({slots} at once)")
        uvicorn.run(
            application(service, key=key, hosts=served), host=host, port=port, log_level="warning",
            limit_concurrency=MOST_CONNECTIONS, timeout_keep_alive=10, server_header=False,
        )  # fmt: skip
    finally:
        service.close()
