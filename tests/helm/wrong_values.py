"""Mistakes in the values: what is wrong, on which profile, and a word of the refusal.

The first half is wrong by itself, and the schema refuses it. The second half is valid alone and wrong together.
"""

from typing import Any

Mistake = tuple[dict[str, Any], str]
Conflict = tuple[str, dict[str, Any], str]

WEIGHTS = {"progress": 1, "dialog": 0, "puzzle": 0, "novelty": 0, "efficiency": 0}
MISTAKES: dict[str, Mistake] = {
    "unknown key at the top": ({"replicas": 3}, "replicas"),
    "unknown service": ({"services": {"planner": {}}}, "planner"),
    "misspelt key": ({"services": {"judge": {"replica": 2}}}, "replica"),
    "replicas as text": ({"services": {"judge": {"replicas": "two"}}}, "replicas"),
    "negative replicas": ({"services": {"exporter": {"replicas": -1}}}, "replicas"),
    "too many replicas": ({"services": {"exporter": {"replicas": 1000}}}, "replicas"),
    "two trainers": ({"services": {"trainer": {"replicas": 2}}}, "replicas"),
    "foreign environment variable": ({"services": {"judge": {"env": {"PATH": "/"}}}}, "PATH"),
    "environment value as number": ({"services": {"judge": {"env": {"ZELDA_JUDGE__SLOTS": 3}}}}, "SLOTS"),
    "memory without unit name": ({"services": {"judge": {"resources": {"limits": {"memory": "lots"}}}}}, "memory"),
    "cpu as number": ({"services": {"judge": {"resources": {"limits": {"cpu": 1}}}}}, "cpu"),
    "unknown resource": ({"services": {"judge": {"resources": {"limits": {"disk": "1Gi"}}}}}, "disk"),
    "unknown training backend": ({"services": {"trainer": {"backend": "slurm"}}}, "backend"),
    "too short grace": ({"services": {"judge": {"graceSeconds": 1}}}, "graceSeconds"),
    "the tag latest": ({"images": {"tag": "latest"}}, "tag"),
    "an invalid digest": ({"images": {"digests": {"judge": "sha256:abc"}}}, "judge"),
    "unknown pull policy": ({"images": {"pullPolicy": "Sometimes"}}, "pullPolicy"),
    "unknown platform": ({"platform": {"odhVersion": "2.9"}}, "odhVersion"),
    "platform as number": ({"platform": {"odhVersion": 3.5}}, "odhVersion"),
    "switch as truth value": ({"apis": {"route": True}}, "route"),
    "unknown optional API": ({"apis": {"istio": "on"}}, "istio"),
    "unknown kind of question": ({"planner": {"routes": {"riddle": {"route": "state"}}}}, "riddle"),
    "a planner that waits for no time": ({"planner": {"routes": {"text": {"timeoutSeconds": 0}}}}, "timeoutSeconds"),
    "unknown log level": ({"log": {"level": "LOUD"}}, "level"),
    "bus address with a password": ({"bus": {"mode": "external", "url": "nats://me:secret@host:4222"}}, "url"),
    "bus address without scheme": ({"bus": {"mode": "external", "url": "host:4222"}}, "url"),
    "two bus servers": ({"bus": {"embedded": {"replicas": 2}}}, "replicas"),
    "store without scheme": ({"store": {"mode": "external", "endpoint": "s3.example.com"}}, "endpoint"),
    "capital letters in a bucket": ({"store": {"prefix": "Zelda"}}, "prefix"),
    "segments for no day": ({"store": {"keepSegmentsDays": 0}}, "keepSegmentsDays"),
    "unknown store": ({"store": {"mode": "disk"}}, "mode"),
    "ROM path upwards": ({"rom": {"source": "pvc", "name": "roms", "path": "../zelda.gbc"}}, "path"),
    "ROM checksum too short": ({"rom": {"sha256": "123abc"}}, "sha256"),
    "unknown judge mode": ({"judges": {"mode": "oracle"}}, "mode"),
    "no votes": ({"judges": {"votes": [0]}}, "votes"),
    "model from the open web": ({"llm": {"models": {"state": {"uri": "http://example.com/x"}}}}, "uri"),
    "nine GPUs in a pod": ({"llm": {"models": {"state": {"gpus": 9}}}}, "gpus"),
    "Ray version without patch": ({"ray": {"version": "2.60"}}, "version"),
    "a password in the values": ({"api": {"token": "secret"}}, "token"),
    "unknown door": ({"expose": {"kind": "loadbalancer"}}, "kind"),
    "an invalid network": ({"networkPolicies": {"externalCidr": "everywhere"}}, "externalCidr"),
    "a model source without mask": ({"networkPolicies": {"modelSourceCidr": "10.0.0.1"}}, "modelSourceCidr"),
    "policies off by word": ({"networkPolicies": {"enabled": "no"}}, "enabled"),
    "scrape interval without unit": ({"monitoring": {"interval": "30"}}, "interval"),
    "a job for a run whose name no run may have": ({"jobs": {"evaluation": {"run": "my.run"}}}, "run"),
    "endless test": ({"hooks": {"testTimeoutSeconds": 1000000}}, "testTimeoutSeconds"),
    # found by the audit of accepted mistakes
    "an even number of votes": ({"judges": {"votes": [4]}}, "votes"),
    "twice the same number of votes": ({"judges": {"votes": [3, 3]}}, "votes"),
    "no number of votes": ({"judges": {"votes": []}}, "votes"),
    "three GPUs for forty heads": ({"llm": {"models": {"puzzle": {"gpus": 3}}}}, "gpus"),
    "a context beyond the model's": ({"llm": {"models": {"state": {"maxModelLen": 131072}}}}, "maxModelLen"),
    "an endpoint with a slash at its end": (
        {"judges": {"external": {"routes": {"state": {"baseUrl": "https://llm.example.com/v1/"}}}}},
        "baseUrl",
    ),
    "an endpoint without its version": (
        {"judges": {"external": {"routes": {"state": {"baseUrl": "https://llm.example.com"}}}}},
        "baseUrl",
    ),
    "a gateway with a slash at its end": ({"llm": {"gatewayUrl": "https://gateway.example.com/"}}, "gatewayUrl"),
    "a store with a slash at its end": ({"store": {"endpoint": "https://s3.example.com/"}}, "endpoint"),
    "a mask of 99 bits": ({"networkPolicies": {"externalCidr": "10.0.0.0/99"}}, "externalCidr"),
    "an address above 255": ({"networkPolicies": {"modelSourceCidr": "10.0.300.0/24"}}, "modelSourceCidr"),
    "a registry with a scheme": ({"images": {"registry": "https://registry.example.com"}}, "registry"),
    "a host with a scheme": ({"expose": {"kind": "route", "host": "https://zelda.example.com"}}, "host"),
    "a Ray that the image lacks": ({"ray": {"version": "2.9.0"}}, "version"),
    "a judge without dimensions": (
        {"judges": {"judges": [{"name": "state", "route": "state", "dimensions": []}]}},
        "dimensions",
    ),
    "an unknown dimension": (
        {"judges": {"judges": [{"name": "state", "route": "state", "dimensions": ["style"]}]}},
        "dimensions",
    ),
    "votes that are copies": (
        {"judges": {"judges": [{"name": "s", "route": "state", "dimensions": ["dialog"], "temperature": 0}]}},
        "temperature",
    ),
    "an unknown way of asking": (
        {"judges": {"judges": [{"name": "s", "route": "state", "dimensions": ["dialog"], "asking": "logprobs"}]}},
        "asking",
    ),
    "a prompt without room": (
        {"judges": {"judges": [{"name": "s", "route": "state", "dimensions": ["dialog"], "maxPromptTokens": 100}]}},
        "maxPromptTokens",
    ),
    "a weight above 1": ({"judges": {"weights": {**WEIGHTS, "progress": 100}}}, "progress"),
    "the weight of an unknown dimension": ({"judges": {"weights": {**WEIGHTS, "style": 0}}}, "style"),
    "four weights": (
        {"judges": {"weights": {"progress": 1, "dialog": 0, "puzzle": 0, "novelty": 0}}},
        "efficiency",
    ),
    "a budget of nothing": ({"judges": {"budget": {"calls": 0}}}, "calls"),
    "an added model without weights": ({"llm": {"models": {"fourth": {"name": "x", "model": "x"}}}}, "uri"),
}

PROBABILITIES = {"name": "s", "route": "state", "dimensions": ["progress"], "asking": "probabilities"}
OWN_SECRETS = {"secrets": {"generate": False}}
CONFLICTS: dict[str, Conflict] = {
    "null for a group": ("dev", {"bus": {"embedded": {"exporter": None}}}, "missing property 'exporter'"),
    "null for a whole section": ("dev", {"judges": None}, "missing property 'judges'"),
    "null for a switch": ("dev", {"expose": {"oauth": {"enabled": None}}}, "missing property 'enabled'"),
    "null for a choice": ("dev", {"judges": {"mode": None}}, "missing property 'mode'"),
    "a planner's route without a model": (
        "openshift",
        {"planner": {"enabled": True, "routes": {"text": {"route": "talk"}}}},
        "use one of puzzle, state, vision",
    ),
    "a planner that nothing may ask": (
        "dev",
        {"planner": {"enabled": True, "routes": dict.fromkeys(("dialog", "puzzle", "text", "vision"))}},
        "give a route, or set planner.enabled to false",
    ),
    "a planner of a job whose account has no name yet": (
        "openshift",
        {"planner": {"enabled": True}, "jobs": {"epoch": {"enabled": True, "run": "first"}}},
        "set jobs.epoch.enabled to false, or llm.auth to false",
    ),
    "a segment lifetime in a claimed bucket": (
        "openshift",
        {"store": {"mode": "bucketclaim", "keepSegmentsDays": 90}},
        "leave it null with store.mode bucketclaim",
    ),
    "a log-in that an Ingress bypasses": (
        "dev",
        {"expose": {"kind": "ingress", "host": "h", "tlsSecret": "t", "oauth": {"enabled": True}}},
        "set expose.kind to route",
    ),
    "a log-in to which nothing leads": (
        "dev",
        {"expose": {"kind": "none", "oauth": {"enabled": True}}},
        "nothing leads to the log-in proxy",
    ),
    "a queued cluster with autoscaling": ("prod", {"ray": {"autoscaling": True}}, "set ray.autoscaling to false"),
    "training on Ray without Ray": ("openshift", {"apis": {"ray": "off"}}, "apis.ray: services.trainer.backend ray"),
    "scaling by queues without KEDA": ("prod", {"apis": {"keda": "off"}}, "apis.keda: services.judge.autoscaling"),
    "a Route without Routes": ("openshift", {"apis": {"route": "off"}}, "apis.route: expose.kind route"),
    "a claimed bucket without claims": (
        "dev",
        {"store": {"mode": "bucketclaim"}, "apis": {"objectBucketClaim": "off"}},
        "apis.objectBucketClaim: store.mode bucketclaim",
    ),
    "models without KServe": (
        "openshift",
        {"apis": {"llmInferenceService": "off"}},
        "llmInferenceService: llm.enabled",
    ),
    "judges without models": ("openshift", {"llm": {"enabled": False}}, "llm.shared.namespace"),
    "two sources of models": ("openshift", {"llm": {"shared": {"namespace": "models"}}}, "set llm.enabled to false"),
    "no Secret for the bus": ("dev", {**OWN_SECRETS, "bus": {"secretName": ""}}, "bus.secretName: no Secret"),
    "no Secret for the store": ("prod", {"store": {"secretName": ""}}, "store.secretName: no Secret"),
    "no Secret for the API": ("prod", {"api": {"tokenSecret": ""}}, "api.tokenSecret: no Secret"),
    "no Secret for the log-in": (
        "prod",
        {"api": {"tokenSecret": ""}, "expose": {"oauth": {"cookieSecret": ""}}},
        "no Secret is named",
    ),
    "an encrypted bus without an authority": (
        "dev",
        {"bus": {"mode": "external", "url": "tls://nats.example.com:4222"}},
        "tls:// needs an authority",
    ),
    "encryption without trust": (
        "dev",
        {"bus": {"tls": {"enabled": True, "secretName": "tls"}}},
        "name the ConfigMap with the authority",
    ),
    "an epoch on Ray without Ray": ("dev", {"jobs": {"epoch": {"enabled": True, "run": "x"}}}, "the job needs Ray"),
    "a job without its run": ("dev", {"jobs": {"evaluation": {"enabled": True}}}, "name the run to judge"),
    "more workers without autoscaling": ("openshift", {"ray": {"workers": {"max": 9}}}, "no effect without"),
    "fewer workers at most than at least": ("openshift", {"ray": {"workers": {"min": 5}}}, "min 5 is above max 3"),
    "fewer judges at most than at least": (
        "openshift",
        {"services": {"judge": {"autoscaling": {"min": 9}}}},
        "min 9 is above max 4",
    ),
    "falling numbers of votes": ("dev", {"judges": {"votes": [7, 3]}}, "the numbers must rise"),
    "falling votes of one judge": (
        "dev",
        {"judges": {"judges": [{"name": "a", "route": "state", "dimensions": ["dialog"], "votes": [5, 1]}]}},
        "the numbers must rise",
    ),
    "weights that do not sum to 1": (
        "openshift",
        {"judges": {"weights": {**WEIGHTS, "puzzle": 0.5}}},
        "judges.weights: their sum is 1.5: make it 1",
    ),
    "no weight for what the judges rate": (
        "openshift",
        {"judges": {"judges": [{"name": "a", "route": "state", "dimensions": ["dialog"]}], "weights": WEIGHTS}},
        "judges.weights: all that the judges rate has weight 0",
    ),
    "probabilities of the rules judge": (
        "dev",
        {"judges": {"judges": [PROBABILITIES]}},
        "which the rules judge does not know",
    ),
    "two models of one name": (
        "openshift",
        {"llm": {"models": {"puzzle": {"name": "qwen25-7b"}}}},
        "llm.models: names must differ",
    ),
    "two judges of one name": (
        "dev",
        {"judges": {"judges": [{"name": "a", "route": r, "dimensions": ["dialog"]} for r in ("state", "puzzle")]}},
        "judges.judges: names must differ",
    ),
    "a judge without a model": (
        "openshift",
        {"judges": {"judges": [{"name": "a", "route": "fourth", "dimensions": ["dialog"]}]}},
        "use one of puzzle, state, vision",
    ),
    "a quota of cores below Ray's": (
        "prod",
        {"kueue": {"admin": {"enabled": True, "cpu": "20"}}},
        "below the 34000m that Ray's pods request",
    ),
    "a quota of memory below Ray's": (
        "prod",
        {"kueue": {"admin": {"enabled": True, "memory": "50Gi"}}},
        "below the 55296Mi that Ray's pods request",
    ),
    "a variable that the chart sets": (
        "dev",
        {"services": {"judge": {"env": {"ZELDA_JUDGES_FILE": "/tmp/judges.yaml"}}}},
        "services.judge.env.ZELDA_JUDGES_FILE",
    ),
    "an address that the chart sets": (
        "dev",
        {"services": {"exporter": {"env": {"ZELDA_STORE__URL": "s3://other"}}}},
        "services.exporter.env.ZELDA_STORE__URL",
    ),
    "a variable of a job that the chart sets": (
        "openshift",
        {"jobs": {"epoch": {"enabled": True, "run": "x", "env": {"ZELDA_STORE__URL": "s3://other"}}}},
        "jobs.epoch.env.ZELDA_STORE__URL",
    ),
    "a setting of an evaluation that the chart sets": (
        "openshift",
        {"jobs": {"evaluation": {"enabled": True, "run": "x", "env": {"ZELDA_JUDGE__USE_DIRECT": "true"}}}},
        "jobs.evaluation.env.ZELDA_JUDGE__USE_DIRECT",
    ),
    "a device of an epoch that the chart sets": (
        "openshift",
        {
            "ray": {"head": {"gpus": 1}},
            "jobs": {"epoch": {"enabled": True, "run": "x", "env": {"ZELDA_DRIVER__LEARNER_DEVICE": "cpu"}}},
        },
        "jobs.epoch.env.ZELDA_DRIVER__LEARNER_DEVICE",
    ),
    "a GPU that the quota lacks": (
        "openshift",
        {"ray": {"head": {"gpus": 1}}, "kueue": {"admin": {"enabled": True}}},
        "kueue.admin.gpus: 0 is below the 1 that Ray's head requests",
    ),
    "a token for a job server that nothing calls": ("dev", {"ray": {"tokenSecret": "ray"}}, "ray.tokenSecret: nothing"),
    "a GPU for a head that does not exist": ("dev", {"ray": {"head": {"gpus": 1}}}, "ray.head.gpus: there is no"),
    "a name that begins with a digit": ("dev", {"fullnameOverride": "1zelda"}, "must begin with a letter"),
    "a name with a dot": ("dev", {"fullnameOverride": "zelda.rl"}, "only letters, digits and hyphens"),
    "a ROM without its file": (
        "dev",
        {"rom": {"source": "pvc", "name": "roms", "sha256": "0" * 64}},
        "rom.path is needed",
    ),
    "a ROM without its checksum": (
        "dev",
        {"rom": {"source": "pvc", "name": "roms", "path": "zelda.gbc"}},
        "rom.sha256 is needed",
    ),
    "an external bus without an address": ("dev", {"bus": {"mode": "external"}}, "bus.url is needed"),
    "an external store without an address": (
        "dev",
        {"store": {"mode": "external", "secretName": "s3"}},
        "store.endpoint is needed",
    ),
}
