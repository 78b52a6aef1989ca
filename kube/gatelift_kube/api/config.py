"""Where an API server is and how to prove who we are: kubeconfig, in-cluster, exec plugins.

The loaders of the `kubernetes` package do the reading; what comes out is our own frozen `ClusterConfig`, used by
`transport`. The package is imported on first use only, in a thread: it costs 0.7 s of CPU.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import ssl
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import yaml

from gatelift_kube.deciding.errors import ConfigError
from gatelift_kube.process.clock import Clock, monotonic

TOKEN_CHECK_SECONDS = 60.0
"""How old a token may be before its file or plugin is looked at again; kubelets renew tokens minutes before expiry."""
EXEC_SECONDS_MAX = 30.0
"""Longest run of an exec plugin; one that asks a person for a password in a daemon would run for ever."""

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


class Credentials(Protocol):
    """Something that knows the value of the header `Authorization`."""

    async def header(self) -> str:
        """Return the header's value, renewed where it is due; empty for none. Raises ConfigError."""
        ...

    def reject(self) -> None:
        """Say that the server refused the last value (401): the next call of `header` renews it."""
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterConfig:
    """How to reach one API server."""

    server: str
    """URL without a slash at its end."""
    tls: ssl.SSLContext | None = None
    """None for plain http."""
    credentials: Credentials | None = None
    server_name: str = ""
    """Name expected in the server's certificate, where it is not that of the URL."""
    proxy: str = ""
    namespace: str = ""
    """Namespace of the context or of our own pod; empty where none is named."""


class RenewedCredentials:
    """A header that `load` renews: at most every `TOKEN_CHECK_SECONDS`, and after a refusal.

    While a renewal fails, the last value is used on: a token outlives its file by minutes.
    """

    def __init__(self, first: str, load: Callable[[bool], Awaitable[str]], clock: Clock = monotonic) -> None:
        self._value = first
        self._load = load
        self._clock = clock
        self._looked_at = clock()
        self._rejected = False

    async def header(self) -> str:
        """Return the newest value that is known."""
        now = self._clock()
        if self._rejected or now - self._looked_at >= TOKEN_CHECK_SECONDS:
            # Set before the await, so that of many requests at once one renews and the others go on.
            refused, self._rejected, self._looked_at = self._rejected, False, now
            try:
                self._value = await self._load(refused) or self._value
            except ConfigError:
                if refused:
                    raise
        return self._value

    def reject(self) -> None:
        """Renew before the next request."""
        self._rejected = True


def file_credentials(path: Path, first: str, clock: Clock = monotonic) -> RenewedCredentials:
    """Return bearer credentials that follow a token file."""

    async def read(_refused: bool) -> str:
        return f"Bearer {await asyncio.to_thread(_read_token, path)}"

    return RenewedCredentials(first, read, clock)


def _read_token(path: Path) -> str:
    try:
        token = path.read_text().strip()
    except OSError as error:
        raise ConfigError(f"token file {path}: {error.strerror}; is the service account token mounted?") from None
    if not token:
        raise ConfigError(f"token file {path}: is empty")
    return token


async def auto(path: str = "", context: str | None = None) -> ClusterConfig:
    """Load what is meant here: `path` if given, KUBECONFIG if set, in-cluster if in a pod, else ~/.kube/config."""
    if not path and not os.environ.get("KUBECONFIG") and os.environ.get("KUBERNETES_SERVICE_HOST"):
        return await in_cluster()
    return await from_kubeconfig(path, context)


async def from_kubeconfig(path: str = "", context: str | None = None) -> ClusterConfig:
    """Load a context (the current one by default) of a kubeconfig file.

    `path` may be a list as in KUBECONFIG; empty means KUBECONFIG or ~/.kube/config. Raises ConfigError in one line.
    """
    where = path or os.environ.get("KUBECONFIG") or "~/.kube/config"
    if _is_folder(where):
        raise ConfigError(f"kubeconfig {where}: is a folder; name a file in it with --kubeconfig or KUBECONFIG")
    if not _is_there(where):
        raise ConfigError(f"kubeconfig {where}: there is no such file; name one with --kubeconfig or KUBECONFIG")
    package = await _package()
    settings = package.client.Configuration()
    try:
        async with asyncio.timeout(EXEC_SECONDS_MAX):
            loader = await package.config.load_kube_config(
                where, context=context, client_configuration=settings, persist_config=False
            )
    except TimeoutError:
        raise ConfigError(f"kubeconfig {where}: its exec plugin took more than {EXEC_SECONDS_MAX:g} s") from None
    except _loader_errors(package) as error:
        raise ConfigError(f"kubeconfig {where}: {_what(error)}") from None
    user = _user_of(loader)
    if "exec" in user and not settings.api_key.get("BearerToken") and not settings.cert_file:
        command = user["exec"].get("command", "?")
        raise ConfigError(f"kubeconfig {where}: exec plugin {command} gave no credential; run it by hand to see why")
    return ClusterConfig(
        server=settings.host.rstrip("/"),
        tls=_tls(settings, where),
        credentials=_kubeconfig_credentials(package, loader, settings, user, where),
        server_name=settings.tls_server_name or "",
        proxy=settings.proxy or "",
        namespace=(loader.current_context.get("context") or {}).get("namespace", ""),
    )


def _is_folder(path: str) -> bool:
    return Path(path).expanduser().is_dir()


def _is_there(paths: str) -> bool:
    return any(Path(each).expanduser().is_file() for each in paths.split(os.pathsep) if each)


async def in_cluster(folder: Path = SERVICE_ACCOUNT, environ: Mapping[str, str] | None = None) -> ClusterConfig:
    """Load what a pod is given: service account token, CA and the address of the API server. Raises ConfigError."""
    package = await _package()
    settings = package.client.Configuration()
    loader = package.config.incluster_config.InClusterConfigLoader(
        token_filename=str(folder / "token"),
        cert_filename=str(folder / "ca.crt"),
        environ=os.environ if environ is None else environ,
    )
    try:
        loader.load_and_set(settings)
    except _loader_errors(package) as error:
        raise ConfigError(f"in-cluster configuration: {_one_line(error)}; outside a pod give a kubeconfig") from None
    # The loader writes the scheme in lower case and keeps a line end; servers do not mind, we do.
    token = _read_token(folder / "token")
    namespace = folder / "namespace"
    return ClusterConfig(
        server=settings.host,
        tls=_tls(settings, str(folder)),
        credentials=file_credentials(folder / "token", f"Bearer {token}"),
        namespace=namespace.read_text().strip() if namespace.is_file() else "",
    )


async def _package() -> Any:
    return await asyncio.to_thread(_import_package)


def _import_package() -> Any:
    importlib.import_module("kubernetes.aio.client")
    importlib.import_module("kubernetes.aio.config.incluster_config")
    return importlib.import_module("kubernetes.aio")


def _loader_errors(package: Any) -> tuple[type[Exception], ...]:
    """Return all that the loaders raise for a file that is not as it should be; they check little themselves."""
    own: type[Exception] = package.config.ConfigException
    return (own, yaml.YAMLError, OSError, ValueError, TypeError, AttributeError, LookupError)


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split())[:300] or type(error).__name__


_NO_FILE = "File does not exists: "
"""How the official loader says that a certificate or key is missing."""


def _what(error: Exception) -> str:
    """Return what is wrong with a kubeconfig and the way out."""
    if isinstance(error, yaml.MarkedYAMLError):
        mark = error.problem_mark
        return f"is not YAML{f' in line {mark.line + 1}' if mark else ''}; mend the syntax there"
    if isinstance(error, UnicodeDecodeError):
        return "is not text; name another file with --kubeconfig or KUBECONFIG"
    text = _one_line(error)
    if text.startswith(_NO_FILE):
        return f"names the file {text.removeprefix(_NO_FILE)}, which is not there; mend it"
    if "Expected object with name" in text:
        name = text.partition("with name ")[2].split(" ", 1)[0]
        return f"names {name!r}, which it does not hold; choose another with --context, or mend current-context"
    if isinstance(error, TypeError | AttributeError):
        return "is empty or no kubeconfig; name another file with --kubeconfig or KUBECONFIG"
    return f"{text}; mend it, or name another file with --kubeconfig"


def _user_of(loader: Any) -> dict[str, Any]:
    """Return the user section of the chosen context as a plain dictionary."""
    user = getattr(loader, "_user", None)
    value = getattr(user, "value", user)
    return value if isinstance(value, dict) else {}


def _tls(settings: Any, where: str) -> ssl.SSLContext | None:
    if not settings.host.startswith("https"):
        return None
    try:
        context = ssl.create_default_context(cafile=settings.ssl_ca_cert)
        if settings.cert_file:
            context.load_cert_chain(settings.cert_file, settings.key_file)
    except (OSError, ssl.SSLError) as error:
        rule = "must be PEM; write the file anew, with 'kubectl config view --raw --flatten' where it works"
        raise ConfigError(f"{where}: certificate or key cannot be used ({_one_line(error)}): {rule}") from None
    if not settings.verify_ssl:
        # The file says insecure-skip-tls-verify; kubectl obeys it too.
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    return context


def _kubeconfig_credentials(
    package: Any, loader: Any, settings: Any, user: dict[str, Any], where: str
) -> Credentials | None:
    first: str = settings.api_key.get("BearerToken", "")
    if not first:
        return None
    if user.get("tokenFile") and not user.get("token"):
        base = Path(where.split(os.pathsep, maxsplit=1)[0]).expanduser().parent
        return file_credentials(base / user["tokenFile"], first)

    async def renew(refused: bool) -> str:
        if "exec" in user:
            if refused:
                loader.exec_plugin_expiry = None
                del loader.exec_plugin_expiry
            elif not hasattr(loader, "exec_plugin_expiry"):
                return first  # the plugin gave no expiry: it is asked again when the server refuses, as kubectl does
        try:
            async with asyncio.timeout(EXEC_SECONDS_MAX):
                await loader.load_and_set(settings)
        except _loader_errors(package) as error:
            raise ConfigError(f"kubeconfig {where}: the credential cannot be renewed: {_one_line(error)}") from None
        return str(settings.api_key.get("BearerToken", ""))

    return RenewedCredentials(first, renew)
