"""A cluster that is somebody's: what is asked before anything is written there, and what is removed in the end."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import closing, contextmanager
from dataclasses import replace
from pathlib import Path

import yaml
from kubernetes.config.config_exception import ConfigException

from infra.local.clients.api import Api
from infra.local.clients.errors import ApiError
from infra.local.clients.kinds import KINDS
from infra.local.clients.labels import HOSTS, OURS, marked, selector
from infra.local.clients.objects import Object
from infra.local.cluster_choice import Asked, Borrowed, ClusterChoice, own
from infra.local.interrupts import uninterrupted
from infra.local.kubeconfig import write_private
from infra.local.live_stack import document, write_credentials
from infra.local.live_target import Live, NotLive, Wanted, of_context
from infra.local.plan import CLUSTER_ID
from infra.local.processes import Processes
from infra.local.relay_account import APPLIED, NOT_EVERYWHERE, manifests
from tpu_slices.domain.model.slices import ClusterId

DEMO_NAMESPACE = "tpu-slices-demo"
MADE = {
    "namespaces": selector(OURS),
    "nodes": HOSTS,
    "clusterrolebindings": selector(OURS),
    "clusterroles": selector(OURS),
    "validatingadmissionpolicybindings": selector(OURS),
    "validatingadmissionpolicies": selector(OURS),
}
"""What is made, by plural and selector, in the order in which it is removed: pods first, while there are kubelets."""

INSTALL_JOBSET = (
    "kubectl apply --server-side -f https://github.com/kubernetes-sigs/jobset/releases/latest/download/manifests.yaml"
)
QUESTION = """\
{server} (context {context} of {file}) is not a cluster of this stack.
Nodes of simulated hosts (label tpu-slices.local/host=true, taint google.com/tpu), the namespaces {namespaces}
and the relay's roles and admission policies will be made there, and removed in the end. JobSets there that ask for TPUs
get such hosts meanwhile.
"""
LIVE = """\
{server} (context {context} of {file}) is not a cluster of this stack.
For JobSets there that ask for TPUs, GKE will create node pools, as {account}: up to {chips} chips at a time, which cost
money. They are deleted in the end, also under JobSets that run. The namespaces {namespaces}
and the relay's roles and admission policies will be made there, and removed in the end.
"""
TOLERATION = "Pods must tolerate the taint google.com/tpu themselves: that API server does not add it, as GKE's does.\n"
EARLIER = "Of an earlier stack there is still"
TPU = "google.com/tpu"
PATIENCE_SECONDS = 90.0
NOT_FOUND = 404

Standing = Mapping[str, list[str]]
"""Names by plural."""


class NotBorrowed(Exception):
    """The cluster is not written to; says why, for the user."""


def settled(asked: Asked, kubectl: Path, state: Path) -> ClusterChoice:
    """Return the cluster to use. Raises NotBorrowed."""
    if asked.kubeconfig is None:
        return own(asked, os.environ)
    return borrow(asked, asked.kubeconfig, kubectl, state)


def borrow(asked: Asked, file: Path, kubectl: Path, state: Path) -> Borrowed:
    """Return the cluster, if it has JobSet, has nobody else's objects of our names, and its user agrees.

    Nothing is written there. Raises NotBorrowed.
    """
    one = _of_file(file, kubectl, state)
    if asked.live is not None:
        one = replace(one, live=_live(one, asked.live, state))
    try:
        with closing(Api.of(one.kubeconfig)) as api:
            require_jobset(api)
            require_our_names(api)
            left, tolerated = standing(api), tolerates_tpus(api)
    except (ApiError, ConfigException) as problem:
        raise NotBorrowed(f"{one.server} (context {one.context} of {file}) cannot be used: {problem}.") from problem
    consent(question(one, file, left, tolerated=tolerated), yes=asked.yes)
    return one


def _live(one: Borrowed, wanted: Wanted, state: Path) -> Live:
    """Return the GKE cluster, and write the credentials to use it with."""
    try:
        live = of_context(one.context, wanted)
        document(live, ClusterId(CLUSTER_ID))
        write_credentials(live, state / "credentials.json")
    except NotLive as problem:
        raise NotBorrowed(str(problem)) from problem
    return live


def _of_file(file: Path, kubectl: Path, state: Path) -> Borrowed:
    """Write a kubeconfig of the current context alone."""
    command = [str(kubectl), "config", "view", f"--kubeconfig={file}", "--minify", "--flatten", "--raw"]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    if done.returncode != 0:
        raise NotBorrowed(f"{file} is no kubeconfig with a current context: {done.stderr.strip()}")
    path = state / "kubeconfig"
    write_private(path, done.stdout)
    document = yaml.safe_load(done.stdout)
    return Borrowed(
        kubeconfig=path, context=document["current-context"], server=document["clusters"][0]["cluster"]["server"]
    )


def require_jobset(api: Api) -> None:
    """Raise NotBorrowed if the cluster does not serve JobSets."""
    try:
        api.list("jobsets", limit="1")
    except ApiError as error:
        if error.code == NOT_FOUND:
            raise NotBorrowed(
                f"There is no JobSet in this cluster; nothing was written. Install it:\n  {INSTALL_JOBSET}"
            ) from error
        raise


def ours() -> list[Object]:
    """Return the objects that are made in every cluster, nodes left out."""
    demo = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": DEMO_NAMESPACE}}
    return [*manifests(CLUSTER_ID), marked(demo)]


def require_our_names(api: Api) -> None:
    """Raise NotBorrowed if an object of a name that we use is somebody else's."""
    for each in ours():
        metadata, plural = each["metadata"], APPLIED[each["kind"]]
        if each["kind"] in NOT_EVERYWHERE and not api.serves(plural):
            continue
        try:
            found = api.get(plural, metadata.get("namespace"), metadata["name"])
        except ApiError as error:
            if error.code == NOT_FOUND:
                continue
            raise
        if not OURS.items() <= (found["metadata"].get("labels") or {}).items():
            raise NotBorrowed(
                f"The cluster has a {each['kind']} {metadata['name']} that is not of a local stack, "
                "such as a relay that is deployed there; nothing was written."
            )


def standing(api: Api) -> Standing:
    """Return what was made in the cluster and is still there."""
    made = {plural: labels for plural, labels in MADE.items() if api.serves(plural)}
    found = {plural: api.list(plural, labelSelector=labels)["items"] for plural, labels in made.items()}
    return {plural: [each["metadata"]["name"] for each in items] for plural, items in found.items() if items}


def tolerates_tpus(api: Api) -> bool:
    """Return whether a dry run shows that the API server lets pods with TPUs tolerate their taint, as GKE's does."""
    limits = {"limits": {TPU: "1"}}
    containers = [{"name": "main", "image": "none", "resources": limits}]
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": {"generateName": "tpu-"}, "spec": {"containers": containers}}
    try:
        made = api.call("POST", KINDS["pods"].path("default"), pod, query={"dryRun": "All"})
    except ApiError:
        return False
    return any(each.get("key") == TPU for each in made["spec"].get("tolerations") or ())


def question(one: Borrowed, file: Path, left: Standing, *, tolerated: bool) -> str:
    """Return what the user agrees to, and should know."""
    spaces = [each["metadata"]["name"] for each in ours() if each["kind"] == "Namespace"]
    named = {"server": one.server, "context": one.context, "file": file, "namespaces": " and ".join(spaces)}
    text = QUESTION.format(**named)
    if one.live is not None:
        text = LIVE.format(**named, account=one.live.account, chips=one.live.chips)
    return text + ("" if tolerated else TOLERATION) + (f"{EARLIER}: {in_words(left)}.\n" if left else "")


def in_words(left: Standing) -> str:
    return "; ".join(f"{plural} {', '.join(names)}" for plural, names in left.items())


def consent(text: str, *, yes: bool) -> None:
    """Ask on the terminal, unless it was said before. Raise NotBorrowed if the answer is not yes."""
    if yes:
        return
    if not sys.stdin.isatty():
        raise NotBorrowed(f"{text}Nothing was written: say --yes to agree without being asked.")
    if input(f"{text}Go on? [y/N] ").strip().lower() not in {"y", "yes"}:
        raise NotBorrowed("Nothing was written.")


@contextmanager
def returned(kubeconfig: Path, processes: Processes) -> Iterator[None]:
    """Remove what was made in the cluster when the block is left, and the copy of the user's credentials."""
    try:
        with closing(Api.of(kubeconfig)) as api:
            clean(api)
        yield
    finally:
        with uninterrupted():
            for child in processes.children():
                if child.program.name in {"gke", "relay"}:
                    processes.end(child)
            with closing(Api.of(kubeconfig)) as api:
                _clean_and_tell(api)
            kubeconfig.unlink()


def _clean_and_tell(api: Api) -> None:
    try:
        left = clean(api)
    except ApiError as problem:
        print(f"What was made in the cluster could not be removed: {problem}", file=sys.stderr)
        return
    if left:
        print(f"Not removed in time from the cluster: {in_words(left)}", file=sys.stderr)


def clean(api: Api, patience: float = PATIENCE_SECONDS) -> Standing:
    """Remove what was made; wait until each kind is gone before the next. Return what is left after so many seconds."""
    deadline = time.monotonic() + patience
    for plural, labels in MADE.items():
        if not api.serves(plural):
            continue
        for each in api.list(plural, labelSelector=labels)["items"]:
            _remove(api, plural, each["metadata"]["name"])
        while api.list(plural, labelSelector=labels)["items"] and time.monotonic() < deadline:
            time.sleep(0.2)
    return standing(api)


def _remove(api: Api, plural: str, name: str) -> None:
    try:
        api.delete(plural, None, name)
    except ApiError as error:
        if error.code != NOT_FOUND:
            raise
