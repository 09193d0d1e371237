"""Who is at the other end of the Unix socket, by the kernel's word."""

from __future__ import annotations

import asyncio
import pwd
import socket
import struct
from dataclasses import dataclass
from typing import Any

from uvicorn.protocols.http.h11_impl import H11Protocol

_UCRED = struct.Struct("3i")


@dataclass(frozen=True)
class Peer:
    uid: int
    user: str


def peer_of(request: Any) -> Peer:
    """From `scope["client"]`, where the protocol below puts the user's number."""
    uid = int(request.client.host)
    try:
        name = pwd.getpwuid(uid).pw_name
    except KeyError:
        name = f"uid {uid}"
    return Peer(uid, name)


class PeerProtocol(H11Protocol):
    """uvicorn's own, which knows no peer of a Unix socket."""

    def connection_made(self, transport: asyncio.Transport) -> None:  # type: ignore[override]
        super().connection_made(transport)
        found: socket.socket = transport.get_extra_info("socket")
        pid, uid, _ = _UCRED.unpack(found.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _UCRED.size))
        self.client = (str(uid), pid)
