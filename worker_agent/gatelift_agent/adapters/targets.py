"""How to reach a port of the manager: address, expected name, proxy; and the gRPC options that follow from it."""

from __future__ import annotations

import socket
from dataclasses import dataclass
from urllib.parse import urlsplit

from gatelift_kube.values.numbers import whole
from gatelift_wire.values import limits

KEEPALIVE_MILLISECONDS = 20_000
"""Below the idle limit of common proxies (60 s), above what would be a load with a thousand agents."""

KEEPALIVE_TIMEOUT_MILLISECONDS = 10_000
MESSAGE_BYTES_MAX = limits.FRAME_BYTES_MAX + 64 * 1024
"""A little above the codec's own limit, so that what is too large gets our typed answer; beyond, gRPC's."""

CONNECT_ANSWER_BYTES_MAX = 8192
"""Head of a proxy's answer to CONNECT."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """One port. `server_name` is the name in its certificate where it is not the address's; `proxy` an http:// URL."""

    address: str
    server_name: str = ""
    proxy: str = ""

    @property
    def host(self) -> str:
        """Host of the address, without the brackets of an IPv6 one."""
        return self.address.rpartition(":")[0].strip("[]") or "localhost"

    @property
    def port(self) -> int:
        """Port of the address."""
        return whole(self.address.rpartition(":")[2]) or 0

    @property
    def tls_name(self) -> str:
        """The name that the server's certificate must have."""
        return self.server_name or self.host

    def options(self) -> list[tuple[str, int | str]]:
        """Return the options of a gRPC channel to here."""
        options: list[tuple[str, int | str]] = [
            ("grpc.keepalive_time_ms", KEEPALIVE_MILLISECONDS),
            ("grpc.keepalive_timeout_ms", KEEPALIVE_TIMEOUT_MILLISECONDS),
            ("grpc.keepalive_permit_without_calls", 1),
            ("grpc.http2.max_pings_without_data", 0),
            ("grpc.max_receive_message_length", MESSAGE_BYTES_MAX),
            ("grpc.max_send_message_length", MESSAGE_BYTES_MAX),
            ("grpc.enable_retries", 0),
            ("grpc.use_local_subchannel_pool", 1),
            ("grpc.enable_http_proxy", 1 if self.proxy else 0),
        ]
        if self.proxy:
            options.append(("grpc.http_proxy", self.proxy))
        if self.server_name:
            options += [
                ("grpc.ssl_target_name_override", self.server_name),
                ("grpc.default_authority", self.server_name),
            ]
        return options

    def connect(self, seconds: float) -> socket.socket:
        """Return a TCP connection, through the proxy if there is one. Raises OSError. Blocks: call it in a thread."""
        if not self.proxy:
            return socket.create_connection((self.host, self.port), timeout=seconds)
        proxy = urlsplit(self.proxy)
        plain = socket.create_connection((proxy.hostname or "", proxy.port or 80), timeout=seconds)
        try:
            self._ask_proxy(plain)
        except OSError:
            plain.close()
            raise
        return plain

    def _ask_proxy(self, plain: socket.socket) -> None:
        plain.sendall(f"CONNECT {self.address} HTTP/1.1\r\nHost: {self.address}\r\n\r\n".encode())
        head = b""
        while b"\r\n\r\n" not in head and len(head) < CONNECT_ANSWER_BYTES_MAX:
            part = plain.recv(1024)
            if not part:
                break
            head += part
        if b" 200 " not in head.split(b"\r\n", 1)[0] + b" ":
            raise OSError(f"proxy {self.proxy} refused: {head[:80].decode(errors='replace').strip()}")
