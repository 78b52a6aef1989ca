"""The audit log of the embedded API server: who asked for what, by token, before the answer is known to anybody."""

from __future__ import annotations

import json
from pathlib import Path

from gatelift_sandbox.embedded.cluster import EmbeddedCluster
from support.e2e import audit_log
from support.servers.contract_api import Api

TOKEN = "/api/v1/namespaces/default/serviceaccounts/default/token"
SECRETS = "/api/v1/namespaces/default/secrets"


async def test_each_request_is_one_line_and_tokens_of_one_account_are_told_apart(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    cluster = EmbeddedCluster("audited", audit_log=log)
    await cluster.start()
    try:
        async with Api.open(cluster.kubeconfig()) as admin:
            await admin.until(TOKEN.removesuffix("/token"), lambda _: True)
            tokens = [(await admin.post(TOKEN, {"spec": {}})).ok()["status"]["token"] for _ in range(2)]
            since = audit_log.size(log)
            assert (await admin.post(SECRETS, {"metadata": {"name": "s"}})).code == 201
            assert [each.done for each in audit_log.writes(log, since)] == [True], "it is there before the answer"
        for token in tokens:
            async with Api.open(cluster.kubeconfig(), token) as account:
                assert (await account.delete(f"{SECRETS}/s")).code == 403
    finally:
        await cluster.stop()
    admins, first, second = audit_log.writes(log, since)
    assert (admins.verb, admins.resource, admins.credential) == ("create", "secrets", "")
    assert (first.verb, first.name, first.code, first.done) == ("delete", "s", 403, False)
    assert first.credential.startswith("JTI=")
    assert first.credential != second.credential
    kubeconfig = tmp_path / "kubeconfig"
    kubeconfig.write_text(json.dumps({"users": [{"user": {"token": tokens[0]}}]}))
    assert audit_log.credential(kubeconfig) == first.credential


def test_a_line_that_is_half_written_belongs_to_what_comes_after(tmp_path: Path) -> None:
    log = tmp_path / "audit.log"
    line = b'{"verb":"create","user":{},"objectRef":{"resource":"secrets","name":"s"},"responseStatus":{"code":201}}\n'
    log.write_bytes(line + line[:40])
    since = audit_log.size(log)
    assert audit_log.writes(log, since) == []
    log.write_bytes(line + line)
    assert [each.name for each in audit_log.writes(log, since)] == ["s"]
