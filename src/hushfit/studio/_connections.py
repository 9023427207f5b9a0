"""Connections that hold a place without asking for anything are closed."""

import asyncio
from typing import Any, Final

from uvicorn.protocols.http.h11_impl import H11Protocol

SECONDS: Final = 15.0


class PatientProtocol(H11Protocol):
    """HTTP whose requests must have arrived, up to their body, within twice `SECONDS`.

    Otherwise a few hundred connections that send nothing, or a header byte by byte, would keep
    everybody out. Requests that are being answered may take as long as they need.
    """

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        self._seen: Any = self  # no request is this
        self._check = self.loop.call_later(SECONDS, self._hang_up_if_idle)

    def connection_lost(self, exc: Exception | None) -> None:
        self._check.cancel()
        super().connection_lost(exc)

    def _hang_up_if_idle(self) -> None:
        last = self.cycle
        if (last is None or last.response_complete) and last is self._seen:
            self.transport.close()
            return
        self._seen = last
        self._check = self.loop.call_later(SECONDS, self._hang_up_if_idle)
