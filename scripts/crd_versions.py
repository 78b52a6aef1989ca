"""The older version of Kueue's CRDs: v1beta1, served for manifests and clients that have not been changed yet.

Its schemas are those of v1beta2 with the fields that were renamed under their old names. Kinds of which a field was
renamed are converted by our webhooks (`gatelift.webhooks.conversion`), the others look the same in both versions.
"""

from __future__ import annotations

import copy
from typing import Any

from scripts.crd_schema import Schema

from gatelift.webhooks.configuration import CONVERT_PATH, CONVERTED, SERVICE, SERVICE_PORT

NAMESPACE = "gatelift-system"
WARNING = "This version is deprecated. Use v1beta2 instead."
_NAME: Schema = {"type": "string", "maxLength": 253}
_SOURCES = ["kueue.x-k8s.io/workloadpriorityclass", "scheduling.k8s.io/priorityclass", ""]


def older(plural: str, version: Schema) -> Schema:
    """Return the v1beta1 of a kind, made of its v1beta2."""
    made: Schema = copy.deepcopy(version)
    made |= {"name": "v1beta1", "storage": False, "deprecated": True, "deprecationWarning": WARNING}
    schema = made["schema"]["openAPIV3Schema"]
    spec, status = _properties(schema, "spec"), _properties(schema, "status")
    if plural == "clusterqueues":
        _rename(spec, "cohortName", "cohort")
        checks = {"type": "array", "maxItems": 64, "items": {"type": "string", "maxLength": 316}}
        spec["admissionChecks"] = checks | {"description": "Names of AdmissionChecks, for all flavors."}
        for name, extra in (("whenCanBorrow", "Borrow"), ("whenCanPreempt", "Preempt")):
            spec["flavorFungibility"]["properties"][name]["enum"].append(extra)
        _words(schema["properties"]["spec"], "cohortName", "cohort")
        for column in made["additionalPrinterColumns"]:
            column["jsonPath"] = column["jsonPath"].replace(".spec.cohortName", ".spec.cohort")
    elif plural == "localqueues":
        _rename(status, "flavorsUsage", "flavorUsage")
    elif plural == "multikueueclusters":
        source = spec.pop("clusterSource")
        spec.update(source["properties"])
        schema["properties"]["spec"] |= {"x-kubernetes-validations": source["x-kubernetes-validations"]}
        schema["properties"]["spec"].pop("required", None)
    elif plural == "workloads":
        del spec["priorityClassRef"]
        source = {"type": "string", "enum": _SOURCES, "description": "The kind of that class."}
        class_name = _NAME | {"description": "Name of a WorkloadPriorityClass or PriorityClass."}
        spec |= {"priorityClassName": class_name, "priorityClassSource": source}
        _rename(status, "accumulatedPastExecutionTimeSeconds", "accumulatedPastExexcutionTimeSeconds")
        for part in (schema, schema["properties"]["spec"]):  # said by the webhook, which sees v1beta2
            _without(part, "priorityClassRef")
    elif plural == "admissionchecks":
        spec["retryDelayMinutes"] = {"type": "integer", "format": "int64", "description": "Not acted on."}
    return made


def conversion(plural: str) -> Schema:
    """Return how the API server converts a kind between its versions."""
    if plural not in CONVERTED:
        return {"strategy": "None"}
    service = {"namespace": NAMESPACE, "name": SERVICE, "path": CONVERT_PATH, "port": SERVICE_PORT}
    webhook = {"clientConfig": {"service": service}, "conversionReviewVersions": ["v1"]}
    return {"strategy": "Webhook", "webhook": webhook}


def _properties(schema: Schema, part: str) -> dict[str, Any]:
    found: dict[str, Any] = schema["properties"].get(part, {}).get("properties", {})
    return found


def _rename(properties: dict[str, Any], old: str, new: str) -> None:
    properties[new] = properties.pop(old)


def _words(schema: Schema, old: str, new: str) -> None:
    for rule in schema["x-kubernetes-validations"]:
        rule["rule"] = rule["rule"].replace(f"self.{old}", f"self.{new}")


def _without(schema: Schema, word: str) -> None:
    kept = [rule for rule in schema.get("x-kubernetes-validations", []) if word not in rule["rule"]]
    schema.pop("x-kubernetes-validations", None)
    if kept:
        schema["x-kubernetes-validations"] = kept
