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

from infra.local.cluster_choice import Asked, Borrowed, ClusterChoice, own
from infra.local.live_stack import document, write_credentials
from infra.local.live_target import Live, NotLive, Wanted, of_context
from infra.local.plan import CLUSTER_ID, id_of
from infra.local.relay_account import APPLIED, NOT_EVERYWHERE, manifests
from tpu_slices.domain.model.node_groups import FINALIZER
from tpu_slices.domain.model.slices import ClusterId
from tpu_standins.clients.api import Api
from tpu_standins.clients.errors import ApiError, gone_already
from tpu_standins.clients.kinds import KINDS
from tpu_standins.clients.labels import HOST, OURS, marked, selector
from tpu_standins.clients.objects import Object
from tpu_standins.interrupts import uninterrupted
from tpu_standins.kubeconfig import write_private
from tpu_standins.patience import PATIENCE_SECONDS
from tpu_standins.processes import Processes

DEMO_NAMESPACE = "tpu-slices-demo"
MADE = {
    "customresourcedefinitions": f"{selector(OURS)},app.kubernetes.io/version",
    "namespaces": selector(OURS),
    "nodes": f"{HOST}=true",
    "rolebindings": selector(OURS),
    "roles": selector(OURS),
    "clusterrolebindings": selector(OURS),
    "clusterroles": selector(OURS),
    "mutatingadmissionpolicybindings": selector(OURS),
    "mutatingadmissionpolicies": selector(OURS),
    "validatingadmissionpolicybindings": selector(OURS),
    "validatingadmissionpolicies": selector(OURS),
}
"""What is made, by plural and selector, in the order in which it is removed: pods while there are kubelets.

The CustomResourceDefinitions are those of the mirror and of TPUNodeGroups; those of local clients of the cluster, which
stay, have no version. They go before namespaces, whose TPUNodeGroups nobody lets go any more.
"""
MADE_ON_COMPUTE = {**MADE, "secrets": "app.kubernetes.io/managed-by=tpu-slice-provisioner,google.com/tpu-slice-id"}
"""The same with the bootstrap tokens of the relay."""

INSTALL_JOBSET = (
    "kubectl apply --server-side -f https://github.com/kubernetes-sigs/jobset/releases/latest/download/manifests.yaml"
)

QUESTION = """\
{server} (context {context} of {file}) is not a cluster of this stack.
Nodes of simulated hosts (label tpu-slices.local/host=true, taint google.com/tpu), the namespaces {namespaces}
and the relay's roles, kinds and admission policies will be made there, and removed in the end. JobSets there that ask
for TPUs get such hosts meanwhile.
"""
ON_COMPUTE = """\
So will the kind TPUNodeGroup, with all its objects, and bootstrap tokens in kube-system, for simulated hosts alone.
"""
LIVE = """\
{server} (context {context} of {file}) is not a cluster of this stack.
For JobSets there that ask for TPUs, GKE will create node pools, as {account}: up to {chips} chips at a time, which cost
money. They are deleted in the end, also under JobSets that run. The namespaces {namespaces}
and the relay's roles, kinds and admission policies will be made there, and removed in the end.
"""
TOLERATION = "Pods must tolerate the taint google.com/tpu themselves: that API server does not add it, as GKE's does.\n"
EARLIER = "Of an earlier stack there is still"
TPU = "google.com/tpu"
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
            require_our_names(api, compute=asked.compute)
            left, tolerated = standing(api, made(compute=asked.compute)), tolerates_tpus(api)
    except (ApiError, ConfigException) as problem:
        raise NotBorrowed(f"{one.server} (context {one.context} of {file}) cannot be used: {problem}.") from problem
    told = question(one, file, left, tolerated=tolerated) + (ON_COMPUTE if asked.compute else "")
    consent(told, yes=asked.yes)
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


def made(*, compute: bool) -> Mapping[str, str]:
    """Return what is made, in a cluster of GKE, or in a self-managed one on Compute Engine."""
    return MADE_ON_COMPUTE if compute else MADE


def ours(*, compute: bool = False) -> list[Object]:
    """Return the objects that are made in every cluster, nodes left out."""
    demo = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": DEMO_NAMESPACE}}
    return [*manifests(id_of(compute=compute), hosts_in="somewhere" if compute else ""), marked(demo)]


def require_our_names(api: Api, *, compute: bool = False) -> None:
    """Raise NotBorrowed if an object of a name that we use is somebody else's."""
    for each in ours(compute=compute):
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


def standing(api: Api, made: Mapping[str, str] = MADE) -> Standing:
    """Return what was made in the cluster and is still there."""
    served = {plural: labels for plural, labels in made.items() if api.serves(plural)}
    found = {plural: api.list(plural, labelSelector=labels)["items"] for plural, labels in served.items()}
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
def returned(kubeconfig: Path, processes: Processes, made: Mapping[str, str] = MADE) -> Iterator[None]:
    """Remove what was made in the cluster when the block is left, and the copy of the user's credentials."""
    try:
        with closing(Api.of(kubeconfig)) as api:
            clean(api, made)
        yield
    finally:
        with uninterrupted():
            for child in processes.children():
                if child.program.name in {"gke", "compute", "relay"}:
                    processes.end(child)
            with closing(Api.of(kubeconfig)) as api:
                _clean_and_tell(api, made)
            kubeconfig.unlink()


def _clean_and_tell(api: Api, made: Mapping[str, str]) -> None:
    try:
        left = clean(api, made)
    except ApiError as problem:
        print(f"What was made in the cluster could not be removed: {problem}", file=sys.stderr)
        return
    if left:
        print(f"Not removed in time from the cluster: {in_words(left)}", file=sys.stderr)


def clean(api: Api, made: Mapping[str, str] = MADE, patience: float = PATIENCE_SECONDS) -> Standing:
    """Remove what was made; wait until each kind is gone before the next. Return what is left after so many seconds."""
    deadline = time.monotonic() + patience
    for plural, labels in made.items():
        if not api.serves(plural):
            continue
        for each in api.list(plural, labelSelector=labels)["items"]:
            with gone_already():
                api.delete(plural, each["metadata"].get("namespace"), each["metadata"]["name"])
        while api.list(plural, labelSelector=labels)["items"] and time.monotonic() < deadline:
            if plural == "customresourcedefinitions":
                _let_go(api)
            time.sleep(0.2)
    return standing(api, made)


def _let_go(api: Api) -> None:
    """Remove our finalizer from TPUNodeGroups, of a kind of ours that goes: nothing is there for them any more."""
    with gone_already():
        for metadata in (group["metadata"] for group in api.list("tpunodegroups")["items"]):
            held = metadata.get("finalizers") or []
            if FINALIZER in held:
                patch = {"metadata": {"finalizers": [each for each in held if each != FINALIZER]}}
                with gone_already():
                    api.patch("tpunodegroups", metadata["namespace"], metadata["name"], patch)
