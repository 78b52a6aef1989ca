"""Finds, or builds once into a cache, the binaries of a real control plane: `python -m gatelift_sandbox.build`.

Looked at in this order: `KUBEBUILDER_ASSETS`; the cache (`GATELIFT_CONTROL_PLANE`, else
`gatelift/control-plane/VERSION` in the user's cache folder); then they are built there from their Go modules.
Used by `processes` (provider `local`).

Kubernetes does not support being built as a dependency: its go.mod replaces about 33 staging modules by folders that
its published module lacks. So the build has a go.mod of its own that replaces each by the published module of the same
release (v1.36.3 goes with v0.36.3), and passes the version as linker flags, without which kubectl complains of skew.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from tenacity import RetryCallState, RetryError, Retrying, retry_if_exception_type, stop_after_delay, wait_fixed

from gatelift_sandbox.errors import BuildError, MissingToolError

KUBERNETES_VERSION = "v1.36.3"
ETCD_VERSION = "v3.6.16"
KUBERNETES_PROGRAMS = ("kube-apiserver", "kube-controller-manager", "kube-scheduler", "kubectl")
PROGRAMS = (*KUBERNETES_PROGRAMS, "etcd")

BUILD_SECONDS_MAX = 1800.0
"""A cold build takes 190 s on two cores; nine times that is a build that hangs."""
LOCK_SECONDS_MAX = BUILD_SECONDS_MAX
"""A second builder waits as long as the first may take."""
LOCK_POLL_SECONDS = 0.5
PROGRESS_SECONDS = 10.0
"""The Go compiler says nothing for minutes; a person wants a sign of life more often."""
VERSION_SECONDS_MAX = 60.0
"""A program of a hundred megabytes says its version at once, unless the disk is cold and the machine busy."""

Say = Callable[[str], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class Binaries:
    """Absolute paths of the programs of one control plane, and the version of its API server (`v1.36.3`)."""

    kube_apiserver: Path
    kube_controller_manager: Path
    kube_scheduler: Path
    kubectl: Path
    etcd: Path
    version: str


def ensure(say: Say = lambda _: None) -> Binaries:
    """Return the binaries, building what is missing. `say` is given progress, one line at a time.

    Errors: MissingToolError (no Go), BuildError (build failed or took longer than BUILD_SECONDS_MAX).
    """
    assets = os.environ.get("KUBEBUILDER_ASSETS", "")
    if not assets:
        folder = cache_folder(KUBERNETES_VERSION)
        _build_missing(folder, KUBERNETES_VERSION, PROGRAMS, say)
        return _binaries({program: folder / program for program in PROGRAMS}, KUBERNETES_VERSION)
    given = Path(assets).resolve()
    if not _is_program(given / "kube-apiserver"):
        raise BuildError(f"KUBEBUILDER_ASSETS={assets} has no kube-apiserver: correct or unset it")
    version = _version_of(given / "kube-apiserver")
    paths = {program: given / program for program in PROGRAMS if _is_program(given / program)}
    missing = tuple(program for program in PROGRAMS if program not in paths)
    if missing:  # setup-envtest brings three of the five; the others must have the API server's version
        folder = cache_folder(version)
        _build_missing(folder, version, missing, say)
        paths |= {program: folder / program for program in missing}
    return _binaries(paths, version)


def find() -> Binaries | None:
    """Return the binaries if all are there, without building anything."""
    assets = os.environ.get("KUBEBUILDER_ASSETS", "")
    given = Path(assets).resolve() if assets else None
    version = KUBERNETES_VERSION
    if given is not None and _is_program(given / "kube-apiserver"):
        version = _version_of(given / "kube-apiserver")
    folders = [folder for folder in (given, cache_folder(version)) if folder is not None]
    paths = {p: folder / p for folder in reversed(folders) for p in PROGRAMS if _is_program(folder / p)}
    return _binaries(paths, version) if len(paths) == len(PROGRAMS) else None


def cache_folder(version: str) -> Path:
    """Return where the binaries of `version` are kept."""
    named = os.environ.get("GATELIFT_CONTROL_PLANE", "")
    if named:
        return Path(named).resolve()
    caches = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(caches) if caches else Path.home() / ".cache") / "gatelift" / "control-plane" / version


def _binaries(paths: dict[str, Path], version: str) -> Binaries:
    return Binaries(version=version, **{program.replace("-", "_"): path for program, path in paths.items()})


def _is_program(path: Path) -> bool:
    return path.is_file() and os.access(path, os.X_OK)


def _version_of(kube_apiserver: Path) -> str:
    try:
        said = subprocess.run(  # noqa: S603 (a program that the caller named)
            [kube_apiserver, "--version"], capture_output=True, text=True, timeout=VERSION_SECONDS_MAX, check=True
        ).stdout
    except (OSError, subprocess.SubprocessError) as failure:
        raise BuildError(f"{kube_apiserver} --version does not work ({failure}): correct KUBEBUILDER_ASSETS") from None
    found = re.search(r"v1\.\d+\.\d+", said)
    if found is None:
        raise BuildError(f"{kube_apiserver} --version says {said.strip()!r}, not v1.MINOR.PATCH")
    return found.group()


def _build_missing(folder: Path, version: str, programs: Sequence[str], say: Say) -> None:
    if all(_is_program(folder / program) for program in programs):
        return
    folder.parent.mkdir(parents=True, exist_ok=True)
    with _only_builder(folder.with_name(folder.name + ".lock"), say):
        missing = [program for program in programs if not _is_program(folder / program)]
        if missing:  # nobody else built them while we waited
            _build(folder, version, missing, say)


@contextlib.contextmanager
def _only_builder(lock: Path, say: Say) -> Iterator[None]:
    """Hold the lock file; the kernel lets it go when its holder dies, so a crash leaves nothing locked."""

    def tell(state: RetryCallState) -> None:
        if state.attempt_number == 1:
            say(f"another process is building; waiting for {lock}")

    locking = Retrying(
        retry=retry_if_exception_type(BlockingIOError),
        wait=wait_fixed(LOCK_POLL_SECONDS),
        stop=stop_after_delay(LOCK_SECONDS_MAX),
        before_sleep=tell,
    )
    with lock.open("w") as file:
        try:
            locking(fcntl.flock, file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except RetryError:
            raise BuildError(f"another builder has held {lock} for {LOCK_SECONDS_MAX:.0f} s: end it") from None
        yield


def _build(folder: Path, version: str, programs: Sequence[str], say: Say) -> None:
    if shutil.which("go") is None:
        raise MissingToolError(
            f"{', '.join(programs)}: not found and not to be built without Go: install Go >= 1.26 (https://go.dev/dl), "
            "or point KUBEBUILDER_ASSETS at ready binaries"
        )
    folder.mkdir(parents=True, exist_ok=True)
    work = Path(tempfile.mkdtemp(prefix=folder.name + ".building-", dir=folder.parent))
    log = folder.parent / f"{folder.name}.build.log"
    started = time.monotonic()
    try:
        with log.open("wb") as output:
            run = _Go(work=work, output=output, log=log, say=say)
            say(f"building {', '.join(programs)} {version} into {folder} (minutes the first time)")
            _write_module(run, work, version)
            bin_folder = work / "bin"
            bin_folder.mkdir()
            wanted = [f"k8s.io/kubernetes/cmd/{p}" for p in programs if p in KUBERNETES_PROGRAMS]
            if wanted:
                flags = _linker_flags(version)
                run("compiling Kubernetes", "build", "-ldflags", flags, "-o", f"{bin_folder}/", *wanted)
            if "etcd" in programs:
                run(
                    "compiling etcd",
                    "build",
                    "-ldflags",
                    "-s -w",
                    "-o",
                    f"{bin_folder}/etcd",
                    "go.etcd.io/etcd/server/v3",
                )
        for program in programs:
            (bin_folder / program).replace(folder / program)  # atomic: a program is whole or not there
        _write_versions(folder, version, work)
    finally:
        shutil.rmtree(work, ignore_errors=True)
    say(f"built in {time.monotonic() - started:.0f} s")


@dataclass(frozen=True, slots=True, kw_only=True)
class _Go:
    """Runs go in the work folder with its output in a log; says every PROGRESS_SECONDS that it still does."""

    work: Path
    output: object
    log: Path
    say: Say

    def __call__(self, what: str, *arguments: str, cwd: Path | None = None) -> str:
        environment = os.environ | {"GOFLAGS": "-mod=mod", "CGO_ENABLED": "0", "GOWORK": "off"}
        started = time.monotonic()
        answer = tempfile.TemporaryFile("w+")  # noqa: SIM115 (closed below; a pipe could fill up)
        process = subprocess.Popen(  # noqa: S603
            ["go", *arguments],  # noqa: S607 (the user's Go, by PATH)
            cwd=cwd or self.work,
            env=environment,
            stdout=answer,
            stderr=self.output,  # type: ignore[call-overload] # an open file
        )
        try:
            while True:
                try:
                    status = process.wait(PROGRESS_SECONDS)
                    break
                except subprocess.TimeoutExpired:
                    elapsed = time.monotonic() - started
                    if elapsed > BUILD_SECONDS_MAX:
                        raise BuildError(f"{what}: not done after {elapsed:.0f} s; see {self.log}") from None
                    self.say(f"{what}: {elapsed:.0f} s")
        finally:
            if process.poll() is None:
                process.kill()
                process.wait()
        with answer:
            answer.seek(0)
            text = answer.read()
        if status != 0:
            raise BuildError(f"{what}: go {arguments[0]} failed ({_last_line(self.log)}); see {self.log}")
        return text


def _last_line(log: Path) -> str:
    lines = [line.strip() for line in log.read_text(errors="replace").splitlines() if line.strip()]
    return lines[-1] if lines else "it said nothing"


def _write_module(run: _Go, work: Path, version: str) -> None:
    answer = run(f"downloading k8s.io/kubernetes {version}", "mod", "download", "-json", f"k8s.io/kubernetes@{version}")
    theirs = Path(json.loads(answer)["GoMod"]).read_text()
    (work / "go.mod").write_text(module_text(theirs, version))


def module_text(theirs: str, version: str) -> str:
    """Return the go.mod that builds Kubernetes `version` as a dependency, given that module's own go.mod."""
    go_line = re.search(r"^go \S+$", theirs, re.MULTILINE)
    staging = sorted(set(re.findall(r"^\s*(?:replace\s+)?(k8s\.io/\S+) => \./staging/", theirs, re.MULTILINE)))
    if go_line is None or not staging:
        raise BuildError(f"go.mod of k8s.io/kubernetes {version} has no go line or no staging modules")
    staging_version = "v0" + version.removeprefix("v1")
    lines = ["module gatelift.dev/control-plane", "", go_line.group(), "", "require ("]
    lines += [f"\tk8s.io/kubernetes {version}", f"\tgo.etcd.io/etcd/server/v3 {ETCD_VERSION}", ")", "", "replace ("]
    lines += [f"\t{name} => {name} {staging_version}" for name in staging]
    return "\n".join([*lines, ")", ""])


def _linker_flags(version: str) -> str:
    package = "k8s.io/component-base/version"
    major, minor, _ = version.removeprefix("v").split(".")
    values = {"gitVersion": version, "gitMajor": major, "gitMinor": minor, "gitTreeState": "clean"}
    return "-s -w " + " ".join(f"-X {package}.{name}={value}" for name, value in values.items())


def _write_versions(folder: Path, version: str, work: Path) -> None:
    go = subprocess.run(
        ["go", "env", "GOVERSION"],  # noqa: S607
        capture_output=True,
        text=True,
        timeout=VERSION_SECONDS_MAX,
        check=False,
        cwd=work,
    ).stdout.strip()
    facts = {"kubernetes": version, "etcd": ETCD_VERSION, "go": go}
    scratch = work / "versions.json"
    scratch.write_text(json.dumps(facts, indent=2) + "\n")
    scratch.replace(folder / "versions.json")


def main() -> int:
    """Find or build, and print where the binaries are."""
    try:
        binaries = ensure(_tell)
    except (BuildError, MissingToolError) as failure:
        _tell(str(failure))
        return 1
    sys.stdout.write(f"control plane {binaries.version}: {binaries.kube_apiserver.parent}\n")
    return 0


def _tell(line: str) -> None:
    sys.stderr.write(f"control-plane: {line}\n")
    sys.stderr.flush()


if __name__ == "__main__":
    sys.exit(main())
