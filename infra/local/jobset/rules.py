"""Which new JobSets are refused, by JobSet's webhook and by its CRD's rules (pure).

Facts and error messages: pkg/webhooks/jobset_webhook.go, pkg/util/placement, the CRD's x-kubernetes-validations.
Feature gates are at their defaults: ElasticJobSet, InPlaceRestart and RestartJob are off.
"""

import re
from collections.abc import Iterator
from typing import Any

from infra.local.clients.reviews import Refused
from infra.local.jobset.names import TOO_LONG, label_1035_errors, label_value_errors, subdomain_errors
from infra.local.jobset.refusals import FieldError, internal, invalid_value

_MAX_INT32 = 2**31 - 1
_RULE_NAME = re.compile(r"^[A-Za-z]([A-Za-z0-9_,:]*[A-Za-z0-9_])?$")
_JOB_FAILURE_REASONS = (
    "BackoffLimitExceeded",
    "DeadlineExceeded",
    "FailedIndexes",
    "MaxFailedIndexesExceeded",
    "PodFailurePolicy",
)
_GATED_ACTIONS = ("RestartJob", "RestartJobAndIgnoreMaxRestarts")
_HTTP_PATH = r"[A-Za-z0-9/\-._~%!$&'()*+,;=:]+"


def create_errors(jobset: dict[str, Any]) -> list[FieldError]:
    """Return the errors of a new JobSet whose defaults are filled in. Raise Refused 501 for volumeClaimPolicies."""
    spec = jobset["spec"]
    if spec.get("volumeClaimPolicies"):
        raise Refused(501, "NotImplemented", "volumeClaimPolicies of JobSets are not implemented locally")
    replicated_jobs = spec.get("replicatedJobs", [])
    found = [*_order_errors(spec), *_network_errors(spec), *_managed_by_errors(spec)]
    for index, replicated in enumerate(replicated_jobs):
        earlier = {job["name"] for job in replicated_jobs[: index + 1]}
        path = f"spec.replicatedJobs[{index}]"
        found += _replicated_job_errors(jobset["metadata"]["name"], replicated, path)
        found += [
            internal(f"replicatedJob: {replicated['name']} cannot depend on replicatedJob: {on['name']}")
            for on in replicated.get("dependsOn", [])
            if on["name"] not in earlier
        ]
        found += _duplicates(replicated.get("dependsOn", []), f"{path}.dependsOn")
    known = {job["name"] for job in replicated_jobs}
    found += _duplicates(replicated_jobs, "spec.replicatedJobs")
    found += [
        internal(f"invalid replicatedJob name '{name}' does not appear in .spec.ReplicatedJobs")
        for name in spec["successPolicy"].get("targetReplicatedJobs", [])
        if name not in known
    ]
    return [*found, *_failure_policy_errors(spec, known), *_coordinator_errors(jobset)]


def _duplicates(named: list[dict[str, Any]], path: str) -> Iterator[FieldError]:
    names = [item["name"] for item in named]
    for index, name in enumerate(names):
        if name in names[:index]:
            yield FieldError(f"{path}[{index}]", f'Duplicate value: {{"name":"{name}"}}')


def _order_errors(spec: dict[str, Any]) -> Iterator[FieldError]:
    jobs = spec.get("replicatedJobs", [])
    if jobs and jobs[0].get("dependsOn") is not None:
        yield internal("DependsOn can't be set for the first ReplicatedJob")
    in_order = spec["startupPolicy"]["startupPolicyOrder"] == "InOrder"
    if in_order and any("dependsOn" in job for job in jobs):
        yield invalid_value("spec", "object", "StartupPolicy and DependsOn APIs are mutually exclusive")


def _network_errors(spec: dict[str, Any]) -> Iterator[FieldError]:
    subdomain = spec["network"].get("subdomain", "")
    path = "spec.network.subdomain"
    if subdomain:
        yield from (invalid_value(path, subdomain, why) for why in subdomain_errors(subdomain))
        too_long = ".spec.network.subdomain is too long, must be less than 63 characters"
        yield from _label_errors(path, subdomain, too_long)


def _label_errors(path: str, value: str, too_long: str, shown: str | None = None) -> Iterator[FieldError]:
    for why in label_1035_errors(value):
        yield invalid_value(path, shown or value, too_long if why == TOO_LONG else why)


def _managed_by_errors(spec: dict[str, Any]) -> Iterator[FieldError]:
    manager = spec.get("managedBy")
    if manager is None:
        return
    domain, slash, path = manager.partition("/")
    if not slash or not path:
        why = 'must be a domain-prefixed path (such as "acme.io/foo")'
        yield invalid_value("spec.managedBy", manager, why)
    else:
        yield from (invalid_value("spec.managedBy", domain, why) for why in subdomain_errors(domain))
        if not re.fullmatch(_HTTP_PATH, path):
            yield invalid_value("spec.managedBy", path, f"Invalid path (regex used for validation is '{_HTTP_PATH}')")
    if len(manager) > 63:
        yield FieldError("spec.managedBy", "Too long: may not be more than 63 bytes")


def _replicated_job_errors(name: str, replicated: dict[str, Any], path: str) -> Iterator[FieldError]:
    job = replicated["template"]["spec"]
    replicas = replicated["replicas"]
    if job.get("parallelism", 1) * replicas > _MAX_INT32:
        yield internal(
            f"the product of replicas and parallelism must not exceed {_MAX_INT32} "
            f"for replicatedJob '{replicated['name']}'"
        )
    too_long = ".spec.replicatedJob[].groupName is too long, must be less than 63 characters"
    yield from _label_errors(f"{path}.groupName", replicated["groupName"], too_long)
    longest_job = f"{name}-{replicated['name']}-{replicas - 1}"
    too_long = "JobSet name is too long, job names generated for this JobSet will exceed 63 characters"
    yield from _label_errors(f"{path}.name", longest_job, too_long)
    if job["completionMode"] == "Indexed" and "completions" in job:
        longest_pod = f"{longest_job}-{job['completions'] - 1}-abcde"
        too_long = "JobSet name is too long, pod names generated for this JobSet will exceed 63 characters"
        yield from _label_errors(f"{path}.name", longest_pod, too_long, shown=longest_job)


def _failure_policy_errors(spec: dict[str, Any], known: set[str]) -> Iterator[FieldError]:
    policy = spec.get("failurePolicy", {})
    if policy.get("restartStrategy") == "InPlaceRestart":
        yield internal("InPlaceRestart restart strategy cannot be set when InPlaceRestart feature gate is disabled")
    rules = policy.get("rules", [])
    if any(rule["action"] in _GATED_ACTIONS for rule in rules):
        yield internal(
            "RestartJob and RestartJobAndIgnoreMaxRestarts failure policy actions are not allowed "
            "when RestartJob feature gate is disabled"
        )
        return
    for rule in rules:
        yield from _rule_errors(rule, known)
    names = [rule["name"] for rule in rules]
    for name in dict.fromkeys(name for name in names if names.count(name) > 1):
        at = " ".join(str(i) for i, other in enumerate(names) if other == name)
        yield internal(f"rule names are not unique, rules with indices [{at}] all have the same name '{name}'")


def _rule_errors(rule: dict[str, Any], known: set[str]) -> Iterator[FieldError]:
    name = rule["name"]
    if len(name) > 128:
        yield internal(
            f"invalid failure policy rule name of length {len(name)}, the rule name must be at least 1 "
            "characters long and at most 128 characters long"
        )
    if not _RULE_NAME.match(name):
        yield internal(
            f"invalid failure policy rule name '{name}', a failure policy rule name must start with an "
            "alphabetic character, optionally followed by a string of alphanumeric characters or '_,:', "
            "and must end with an alphanumeric character or '_'"
        )
    for target in rule.get("targetReplicatedJobs", []):
        if target not in known:
            yield internal(
                f"invalid replicatedJob name '{target}' in failure policy does not appear in .spec.ReplicatedJobs"
            )
    for reason in rule.get("onJobFailureReasons", []):
        if reason not in _JOB_FAILURE_REASONS:
            yield internal(
                f"invalid job failure reason '{reason}' in failure policy is not a recognized job failure reason"
            )


def _coordinator_errors(jobset: dict[str, Any]) -> Iterator[FieldError]:
    spec = jobset["spec"]
    coordinator = spec.get("coordinator")
    if coordinator is None:
        return
    name, job_index, pod_index = (coordinator.get(k, 0) for k in ("replicatedJob", "jobIndex", "podIndex"))
    replicated = next((job for job in spec.get("replicatedJobs", []) if job["name"] == name), None)
    if replicated is None:
        yield internal(f"coordinator replicatedJob {name} does not exist")
        return
    job = replicated["template"]["spec"]
    if not 0 <= job_index < replicated["replicas"]:
        yield internal(f"coordinator job index {job_index} is invalid for replicatedJob {name}")
    elif job["completionMode"] != "Indexed" or "completions" not in job:
        yield internal("job for coordinator pod must be indexed completion mode, and completions number must be set")
    elif not 0 <= pod_index < job["completions"]:
        yield internal(f"coordinator pod index {pod_index} is invalid for replicatedJob {name} job index {job_index}")
    subdomain = spec["network"].get("subdomain") or jobset["metadata"]["name"]
    label = f"{jobset['metadata']['name']}-{name}-{job_index}-{pod_index}.{subdomain}"
    if wrong := label_value_errors(label):
        yield internal(
            f'spec will lead to invalid label value "{label}" for coordinator label '
            '"jobset.sigs.k8s.io/coordinator" (long JobSet / ReplicatedJob / SubDomain name?): ' + ", ".join(wrong)
        )
