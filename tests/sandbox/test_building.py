"""Finding and building control-plane binaries, with a `go` that is a shell script."""

from __future__ import annotations

import fcntl
import json
import threading
from pathlib import Path

import pytest

from gatelift_sandbox import build
from gatelift_sandbox.errors import BuildError, MissingToolError

THEIR_GO_MOD = """module k8s.io/kubernetes

go 1.26.0

require golang.org/x/net v0.1.0

replace (
	k8s.io/api => ./staging/src/k8s.io/api
	k8s.io/client-go => ./staging/src/k8s.io/client-go
)
"""

FAKE_GO = """#!/bin/sh
echo "$@" >> "{folder}/calls"
case "$1" in
  mod) printf '{{"GoMod": "{folder}/their.mod"}}' ;;
  env) echo go1.26.8 ;;
  build)
    {fail}
    grep -q 'k8s.io/client-go => k8s.io/client-go v0.36.3' go.mod || exit 9
    while [ "$1" != -o ]; do shift; done
    out=$2; shift 2
    for package in "$@"; do
      case "$out" in */) file=$out$(basename "$package") ;; *) file=$out ;; esac
      printf '#!/bin/sh\\necho made\\n' > "$file"; chmod 755 "$file"
    done ;;
esac
"""


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    folder = tmp_path / "cache" / "here"
    monkeypatch.setenv("GATELIFT_CONTROL_PLANE", str(folder))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    return folder


def fake_go(tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fail: str = "") -> Path:
    (tmp_path / "their.mod").write_text(THEIR_GO_MOD)
    programs = tmp_path / "programs"
    programs.mkdir()
    a_program(programs / "go", FAKE_GO.format(folder=tmp_path, fail=fail))
    monkeypatch.setenv("PATH", f"{programs}:/usr/bin:/bin")
    return tmp_path / "calls"


def a_program(path: Path, text: str = "#!/bin/sh\n") -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(text)
    path.chmod(0o755)


def test_our_go_mod_replaces_each_staging_module_by_its_published_version() -> None:
    text = build.module_text(THEIR_GO_MOD, "v1.36.3")
    assert "go 1.26.0\n" in text
    assert "\tk8s.io/kubernetes v1.36.3\n" in text
    assert "\tk8s.io/api => k8s.io/api v0.36.3\n" in text
    assert "./staging" not in text


def test_a_go_mod_of_another_shape_is_an_error_not_a_broken_build() -> None:
    with pytest.raises(BuildError, match="no staging modules"):
        build.module_text("module x\n\ngo 1.26\n", "v1.36.3")


def test_what_is_missing_is_built_once(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = fake_go(tmp_path, monkeypatch)
    said: list[str] = []
    binaries = build.ensure(said.append)
    assert binaries.kube_scheduler == cache / "kube-scheduler"
    assert binaries.version == build.KUBERNETES_VERSION
    assert any(line.startswith("building kube-apiserver, ") for line in said)
    assert json.loads((cache / "versions.json").read_text())["go"] == "go1.26.8"
    made = calls.read_text()
    assert "gitVersion=v1.36.3" in made
    assert build.ensure() == binaries == build.find()
    assert calls.read_text() == made, "nothing is built twice"
    assert [path.name for path in cache.parent.iterdir() if "building" in path.name] == []


def test_only_the_missing_programs_are_built(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    calls = fake_go(tmp_path, monkeypatch)
    for program in build.PROGRAMS[1:]:
        a_program(cache / program)
    build.ensure()
    (built,) = [line for line in calls.read_text().splitlines() if line.startswith("build")]
    assert built.endswith(" k8s.io/kubernetes/cmd/kube-apiserver")


def test_a_build_that_fails_says_why_and_where_its_log_is(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_go(tmp_path, monkeypatch, fail="echo 'no space left' >&2; exit 1")
    with pytest.raises(BuildError, match=r"compiling Kubernetes: go build failed \(no space left\); see .*build\.log"):
        build.ensure()
    assert build.find() is None


def test_without_go_the_way_out_is_named(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(MissingToolError, match=r"install Go .* or point KUBEBUILDER_ASSETS at ready binaries"):
        build.ensure()


def test_ready_binaries_are_honoured(cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assets = tmp_path / "assets"
    for program in build.PROGRAMS:
        a_program(assets / program, "#!/bin/sh\necho Kubernetes v1.35.1\n")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    binaries = build.ensure()
    assert (binaries.etcd, binaries.version) == (assets / "etcd", "v1.35.1")
    assert build.find() == binaries


def test_what_ready_binaries_lack_comes_in_their_version(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    assets = tmp_path / "assets"
    for program in ("kube-apiserver", "etcd", "kubectl"):
        a_program(assets / program, f"#!/bin/sh\necho Kubernetes {build.KUBERNETES_VERSION}\n")
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(assets))
    fake_go(tmp_path, monkeypatch)
    binaries = build.ensure()
    assert binaries.kubectl == assets / "kubectl"
    assert binaries.kube_controller_manager == cache / "kube-controller-manager"


def test_a_folder_without_an_api_server_is_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBEBUILDER_ASSETS", str(tmp_path))
    with pytest.raises(BuildError, match="has no kube-apiserver: correct or unset it"):
        build.ensure()


def test_a_second_builder_waits_for_the_first_and_builds_nothing(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = fake_go(tmp_path, monkeypatch)
    cache.mkdir(parents=True)
    waiting = threading.Event()
    outcome: list[build.Binaries] = []
    with cache.with_name("here.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        second = threading.Thread(target=lambda: outcome.append(build.ensure(lambda _: waiting.set())))
        second.start()
        assert waiting.wait(60)
        for program in build.PROGRAMS:  # the first builder is done
            a_program(cache / program)
    second.join(60)
    assert len(outcome) == 1
    assert not calls.exists()


def test_is_48_a_builder_that_never_ends_is_named_after_the_limit(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fake_go(tmp_path, monkeypatch)
    cache.mkdir(parents=True)
    told: list[str] = []
    monkeypatch.setattr(build, "LOCK_SECONDS_MAX", 0.3)
    monkeypatch.setattr(build, "LOCK_POLL_SECONDS", 0.001)
    with cache.with_name("here.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        with pytest.raises(BuildError, match=r"another builder has held .*here\.lock for 0 s: end it"):
            build.ensure(told.append)
    assert told == [f"another process is building; waiting for {cache.with_name('here.lock')}"]


def test_the_command_says_its_error_in_one_line(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path))
    assert build.main() == 1
    said = capsys.readouterr().err
    assert said.startswith("control-plane: kube-apiserver")
    assert said.count("\n") == 1


def test_the_command_says_where_the_binaries_are(cache: Path, capsys: pytest.CaptureFixture[str]) -> None:
    for program in build.PROGRAMS:
        a_program(cache / program)
    assert build.main() == 0
    assert capsys.readouterr().out == f"control plane {build.KUBERNETES_VERSION}: {cache}\n"
