"""Where the API server is and who we are, from files of every kind."""

from __future__ import annotations

import json
import ssl
import stat
import sys
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml

from gatelift_kube.api import config
from gatelift_kube.api.client import Client
from gatelift_kube.api.config import RenewedCredentials
from gatelift_kube.deciding.errors import ConfigError, UnauthorizedError
from gatelift_kube.values.resources import POD
from support.servers.fake_apiserver import FakeApiServer, ref_of, status_of
from support.servers.serving import write_serving_certificate


def write_kubeconfig(folder: Path, server: str, user: dict[str, Any], **cluster: Any) -> Path:
    path = folder / "config.yaml"
    content = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "first",
        "contexts": [
            {"name": "first", "context": {"cluster": "c", "user": "u", "namespace": "team-a"}},
            {"name": "second", "context": {"cluster": "c", "user": "nobody"}},
        ],
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    path.write_text(yaml.safe_dump(content))
    return path


def write_certificate(folder: Path) -> tuple[Path, Path]:
    pem, secret = folder / "ca.crt", folder / "tls.key"
    write_serving_certificate(pem, secret)
    return pem, secret


def write_plugin(folder: Path, expires_in: timedelta = timedelta(hours=1)) -> Path:
    """Write an exec plugin whose token counts its runs."""
    path = folder / "plugin"
    expiry = (datetime.now(UTC) + expires_in).strftime("%Y-%m-%dT%H:%M:%SZ")
    path.write_text(
        f"#!{sys.executable}\n"
        "import json, pathlib\n"
        f"runs = pathlib.Path({str(folder / 'runs')!r})\n"
        "count = int(runs.read_text()) + 1 if runs.exists() else 1\n"
        "runs.write_text(str(count))\n"
        "print(json.dumps({'apiVersion': 'client.authentication.k8s.io/v1', 'kind': 'ExecCredential',"
        f" 'status': {{'token': f'token-{{count}}', 'expirationTimestamp': {expiry!r}}}}}))\n"
    )
    path.chmod(path.stat().st_mode | stat.S_IXUSR)
    return path


def exec_user(plugin: Path) -> dict[str, Any]:
    return {
        "exec": {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": str(plugin),
            "interactiveMode": "Never",
        }
    }


async def test_a_kubeconfig_with_certificates_gives_mutual_tls(tmp_path: Path) -> None:
    pem, key = write_certificate(tmp_path)
    user = {"client-certificate": "ca.crt", "client-key": "tls.key"}
    path = write_kubeconfig(tmp_path, "https://example.test:6443/", user, **{"certificate-authority": str(pem)})
    loaded = await config.from_kubeconfig(str(path))
    assert key.exists()
    assert loaded.server == "https://example.test:6443"
    assert loaded.tls is not None
    assert loaded.tls.verify_mode is ssl.CERT_REQUIRED
    assert len(loaded.tls.get_ca_certs()) == 1
    assert loaded.credentials is None
    assert loaded.namespace == "team-a"


async def test_insecure_skip_tls_verify_is_obeyed(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path, "https://example.test", {"token": "t"}, **{"insecure-skip-tls-verify": True})
    loaded = await config.from_kubeconfig(str(path))
    assert loaded.tls is not None
    assert loaded.tls.verify_mode is ssl.CERT_NONE


async def test_a_token_in_the_kubeconfig_is_sent(server: FakeApiServer, tmp_path: Path) -> None:
    server.put(POD, "p", "ns")
    loaded = await config.from_kubeconfig(str(write_kubeconfig(tmp_path, server.url, {"token": "secret"})))
    async with Client.connect(loaded) as client:
        await client.get(ref_of(POD, "p", "ns"))
    assert server.seen[0].headers["Authorization"] == "Bearer secret"
    assert "secret" not in repr(loaded)


async def test_another_context_is_chosen_by_name(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path, "http://example.test", {"token": "secret"})
    loaded = await config.from_kubeconfig(str(path), "second")
    assert loaded.credentials is None


async def test_a_token_file_is_followed(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("first\n")
    now = 0.0
    credentials = config.file_credentials(tmp_path / "token", "Bearer first", lambda: now)
    (tmp_path / "token").write_text("second\n")
    assert await credentials.header() == "Bearer first"
    now = config.TOKEN_CHECK_SECONDS
    assert await credentials.header() == "Bearer second"
    (tmp_path / "token").unlink()
    now += config.TOKEN_CHECK_SECONDS
    assert await credentials.header() == "Bearer second"


async def test_a_token_file_of_a_kubeconfig_is_found_beside_it(server: FakeApiServer, tmp_path: Path) -> None:
    (tmp_path / "token").write_text("from-file")
    loaded = await config.from_kubeconfig(str(write_kubeconfig(tmp_path, server.url, {"tokenFile": "token"})))
    assert loaded.credentials is not None
    (tmp_path / "token").write_text("renewed")
    loaded.credentials.reject()
    assert await loaded.credentials.header() == "Bearer renewed"


async def test_a_token_that_the_server_refuses_is_renewed_and_the_read_succeeds(
    server: FakeApiServer, tmp_path: Path
) -> None:
    server.put(POD, "p", "ns")
    (tmp_path / "token").write_text("old")
    loaded = await config.from_kubeconfig(str(write_kubeconfig(tmp_path, server.url, {"tokenFile": "token"})))
    (tmp_path / "token").write_text("new")
    server.fault("GET", "/p", status=401, body=status_of(401, "Unauthorized"))
    async with Client.connect(loaded) as client:
        await client.get(ref_of(POD, "p", "ns"))
    assert [seen.headers["Authorization"] for seen in server.seen] == ["Bearer old", "Bearer new"]


async def test_a_refused_read_gives_up_after_one_renewal(server: FakeApiServer, tmp_path: Path) -> None:
    server.fault("GET", "/p", times=9, status=401, body=status_of(401, "Unauthorized"))
    loaded = await config.from_kubeconfig(str(write_kubeconfig(tmp_path, server.url, {"token": "t"})))
    async with Client.connect(loaded) as client:
        with pytest.raises(UnauthorizedError):
            await client.get(ref_of(POD, "p", "ns"))
    assert len(server.seen) == 2


async def test_an_exec_plugin_is_run_once_and_again_when_refused(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path, "http://example.test", exec_user(write_plugin(tmp_path)))
    loaded = await config.from_kubeconfig(str(path))
    assert loaded.credentials is not None
    assert await loaded.credentials.header() == "Bearer token-1"
    assert await loaded.credentials.header() == "Bearer token-1"
    loaded.credentials.reject()
    assert await loaded.credentials.header() == "Bearer token-2"


async def test_an_exec_plugin_that_fails_is_named(tmp_path: Path) -> None:
    path = write_kubeconfig(tmp_path, "http://example.test", exec_user(tmp_path / "none"))
    with pytest.raises(ConfigError, match=r"exec plugin .*/none gave no credential; run it by hand to see why"):
        await config.from_kubeconfig(str(path))


@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ("current-context: x\ncontexts: []\nclusters: []\nusers: []\n", "names 'x', which it does not hold"),
        ("{", "kubeconfig .*config.yaml: "),
        ("just text", "kubeconfig .*config.yaml: "),
        ("", "kubeconfig .*config.yaml: "),
    ],
)
async def test_a_broken_kubeconfig_is_one_line(tmp_path: Path, content: str, problem: str) -> None:
    path = tmp_path / "config.yaml"
    path.write_text(content)
    with pytest.raises(ConfigError, match=problem) as caught:
        await config.from_kubeconfig(str(path))
    assert "\n" not in str(caught.value)


async def test_a_kubeconfig_that_is_a_folder_or_no_text_or_names_what_is_not_there_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="is a folder; name a file in it"):
        await config.from_kubeconfig(str(tmp_path))
    path = tmp_path / "random"
    path.write_bytes(b"\x9a\xff\x00\x9a")
    with pytest.raises(ConfigError, match="random: is not text; name another file"):
        await config.from_kubeconfig(str(path))
    user = {"client-certificate": "/nowhere/a.crt", "client-key": "/nowhere/a.key"}
    path = write_kubeconfig(tmp_path, "https://example.test", user)
    with pytest.raises(ConfigError, match=r"names the file /nowhere/a\.\w+, which is not there; mend it"):
        await config.from_kubeconfig(str(path))


async def test_a_missing_kubeconfig_says_what_to_do(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="there is no such file; name one with --kubeconfig or KUBECONFIG"):
        await config.from_kubeconfig(str(tmp_path / "none"))


async def test_a_certificate_that_is_none_is_named(tmp_path: Path) -> None:
    (tmp_path / "ca.crt").write_text("not a certificate")
    path = write_kubeconfig(tmp_path, "https://example.test", {}, **{"certificate-authority": "ca.crt"})
    with pytest.raises(ConfigError, match="certificate or key cannot be used"):
        await config.from_kubeconfig(str(path))


async def test_a_pod_finds_its_own_cluster(tmp_path: Path) -> None:
    write_certificate(tmp_path)
    (tmp_path / "token").write_text("pod-token\n")
    (tmp_path / "namespace").write_text("gatelift-system")
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    loaded = await config.in_cluster(tmp_path, environ)
    assert loaded.server == "https://[fd00::1]:443"
    assert loaded.namespace == "gatelift-system"
    assert loaded.credentials is not None
    assert await loaded.credentials.header() == "Bearer pod-token"


async def test_outside_a_pod_the_error_says_so(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="outside a pod give a kubeconfig"):
        await config.in_cluster(tmp_path, {})


async def test_what_is_meant_is_found_by_the_environment(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_kubeconfig(tmp_path, "http://example.test", {})
    monkeypatch.setenv("KUBECONFIG", str(path))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    assert (await config.auto()).server == "http://example.test"
    monkeypatch.delenv("KUBECONFIG")
    with pytest.raises(ConfigError, match="in-cluster"):
        await config.auto()
    assert (await config.auto(str(path))).server == "http://example.test"


async def test_a_renewal_that_fails_keeps_the_last_value_until_it_is_refused() -> None:
    now = 0.0

    async def fail(_refused: bool) -> str:
        raise ConfigError("plugin is gone")

    credentials = RenewedCredentials("Bearer a", fail, lambda: now)
    now = 100.0
    assert await credentials.header() == "Bearer a"
    credentials.reject()
    with pytest.raises(ConfigError, match="plugin is gone"):
        await credentials.header()


def test_the_official_package_is_not_imported_before_it_is_needed() -> None:
    import subprocess  # noqa: PLC0415 - only this test starts a process

    code = "import sys, gatelift_kube.api.client, gatelift_kube.api.leader; print('kubernetes' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)  # noqa: S603 - our own code
    assert json.loads(done.stdout.strip().lower()) is False
