"""OpenShift AI's KServe: the vLLM pod that it makes of an LLMInferenceService.

Paths are in github.com/opendatahub-io/kserve: pkg/controller/llmisvc at odh-v3.3 (444d1821fd), pkg/controller/v1alpha2/
llmisvc at odh-v3.4 (894f58c6cd) and odh-v3.5 (536a808f19).
"""

import copy
from typing import Any

from tests.helm.rendering import Object, named

WEIGHTS = "/mnt/models"
TOKEN = "HF_TOKEN"

# Resources of the containers of a router's pod: config/llmisvc(config)/config-llm-scheduler.yaml. The second of 3.4 is
# a tokenizer; in 3.5 it is a pod of its own, which tokenizer.go isTokenizerEnabled starts for plugins that need tokens.
_SMALL = {"requests": {"cpu": "256m", "memory": "500Mi"}}
ROUTERS: dict[str, list[Object]] = {
    "3.3": [_SMALL],
    "3.4": [_SMALL, _SMALL],
    "3.5": [{"requests": {"cpu": "1", "memory": "2Gi"}, "limits": {"cpu": "6", "memory": "16Gi"}}],
}
TOKENIZER_PLUGINS = ("token-producer", "precise-prefix-cache-scorer")


def deployed(service: Object, objects: list[Object], platform: str) -> Object:
    """The spec of the vLLM pod: the preset `kserve-config-llm-template`, the service's template, and the weights."""
    template = copy.deepcopy(service["spec"]["template"])
    (main,) = template["containers"]
    preset = {"name": "main", "ports": [{"containerPort": 8000}], "env": [{"name": "HOME", "value": "/home"}]}
    main = {**preset, **main, "env": _merged(preset["env"], main.get("env", []))}
    main["command"] = ["/bin/bash", "-c"]
    main["line"] = command_line(main, platform)
    pod = {**template, "containers": [main], "initContainers": [], "volumes": list(template.get("volumes", []))}
    _attach_weights(pod, service["spec"]["model"]["uri"], objects)
    return pod


def _merged(preset: Any, own: list[Object]) -> list[Object]:
    """Strategic merge of variables by name. config_merge.go MergeSpecs (odh-v3.3 to 3.5)."""
    return list({entry["name"]: entry for entry in [*preset, *own]}.values())


def command_line(main: Object, platform: str) -> str:
    """What the preset's shell evaluates. config/llmisvc(config)/config-llm-template.yaml: up to odh-v3.3 the script is
    in `args`, so that own ones would replace it; from odh-v3.4 on it is in `command` and takes them as `$@`."""
    extra = next((entry["value"] for entry in main["env"] if entry["name"] == "VLLM_ADDITIONAL_ARGS"), "")
    if platform in ("3.0", "3.3"):
        return " ".join(main["args"]) if "args" in main else f"vllm serve {WEIGHTS} --port 8000 {extra}"
    return f"vllm serve {WEIGHTS} --port 8000 {extra} {' '.join(main.get('args', []))}"


def _attach_weights(pod: Object, uri: str, objects: list[Object]) -> None:
    """workload_storage.go attachModelArtifacts: a claim and an image are mounted, everything else is downloaded."""
    scheme, _, path = uri.partition("://")
    main = pod["containers"][0]
    if scheme == "pvc":
        claim, _, folder = path.partition("/")
        pod["volumes"].append(
            {"name": "kserve-pvc-source", "persistentVolumeClaim": {"claimName": claim, "readOnly": True}}
        )
        main["volumeMounts"] = [{"name": "kserve-pvc-source", "mountPath": WEIGHTS, "subPath": folder}]
    elif scheme == "oci":
        pod["volumes"].append({"name": "modelcar", "emptyDir": {}})
        pod["initContainers"].append({"name": "modelcar-init", "image": path})
        main["volumeMounts"] = [{"name": "modelcar", "mountPath": WEIGHTS}]
    else:
        pod["volumes"].append({"name": "kserve-provision-location", "emptyDir": {}})
        loader: Object = {"name": "storage-initializer", "args": [uri, WEIGHTS], "env": _credentials(pod, objects)}
        pod["initContainers"].append(loader)
        main["volumeMounts"] = [{"name": "kserve-provision-location", "mountPath": WEIGHTS}]


def _credentials(pod: Object, objects: list[Object]) -> list[Object]:
    """Variables of the initializer: from the Secrets of the template's ServiceAccount, `default` if it names none.
    workload_storage.go attachHfModelArtifact; pkg/credentials/service_account_credentials.go (odh-v3.3 to 3.5)."""
    account = pod.get("serviceAccountName", "default")
    if account == "default":
        return []
    secrets = named(objects, "ServiceAccount", account).get("secrets", [])
    return [{"name": TOKEN, "valueFrom": {"secretKeyRef": {"name": one["name"], "key": TOKEN}}} for one in secrets]
