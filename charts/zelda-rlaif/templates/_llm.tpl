{{/* API versions by platform release: ODH 3.4 stores v1alpha2 and passes container arguments on; before, only an
     environment variable reached vLLM. The router's own API group changed in 3.5. */}}
{{- define "zelda.llmModern" -}}
{{- if has .Values.platform.odhVersion (list "3.4" "3.5") }}true{{ end }}
{{- end }}

{{- define "zelda.llmApi" -}}
serving.kserve.io/{{ if include "zelda.llmModern" . }}v1alpha2{{ else }}v1alpha1{{ end }}
{{- end }}

{{- define "zelda.objectiveApi" -}}
{{- if eq .Values.platform.odhVersion "3.5" }}llm-d.ai{{ else }}inference.networking.x-k8s.io{{ end }}/v1alpha2
{{- end }}

{{/* dict root route -> JSON of a model: its values over the defaults of an added entry */}}
{{- define "zelda.model" -}}
{{- $toleration := dict "key" "nvidia.com/gpu" "operator" "Exists" "effect" "NoSchedule" }}
{{- $resources := dict "requests" (dict "cpu" "4" "memory" "24Gi") "limits" (dict "cpu" "8" "memory" "48Gi") }}
{{- $defaults := dict "weightsSize" "20Gi" "replicas" 1 "gpus" 1 "maxModelLen" 16384 "imagesPerPrompt" 0 "startupMinutes" 30 "args" (list) "resources" $resources "nodeSelector" (dict "nvidia.com/gpu.present" "true") "tolerations" (list $toleration) }}
{{- $model := index .root.Values.llm.models .route | deepCopy }}
{{- if not $model }}{{ fail (printf "judges.judges: route %s: llm.models has no entry of this name: add it, or choose one of %s" .route (keys .root.Values.llm.models | sortAlpha | join ", ")) }}{{ end }}
{{- range $name, $default := $defaults }}{{ if not (hasKey $model $name) }}{{ $_ := set $model $name $default }}{{ end }}{{ end }}
{{- toJson $model }}
{{- end }}

{{/* dict root name -> name of the LLMInferenceService: in a namespace of somebody else it is theirs */}}
{{- define "zelda.modelObject" -}}
{{- if .root.Values.llm.enabled }}{{ include "zelda.fullname" .root }}-{{ .name }}{{ else }}{{ .name }}{{ end }}
{{- end }}

{{/* namespace of the models */}}
{{- define "zelda.modelNamespace" -}}
{{- if .Values.llm.enabled }}{{ .Release.Namespace }}{{ else }}{{ .Values.llm.shared.namespace }}{{ end }}
{{- end }}

{{/* Model -> JSON list of vLLM arguments. The preset evaluates them again in a shell, so JSON keeps inner quotes. */}}
{{- define "zelda.llmArgs" -}}
{{- $args := list "--max-model-len" (toString .maxModelLen) "--enable-prompt-tokens-details" "--enable-prefix-caching" }}
{{- if .imagesPerPrompt }}
{{- $args = concat $args (list "--limit-mm-per-prompt" (printf "'{\"image\":%d,\"video\":0}'" (int .imagesPerPrompt))) }}
{{- end }}
{{- concat $args .args | toJson }}
{{- end }}

{{- define "zelda.llmInferenceService" -}}
{{- $modern := include "zelda.llmModern" .root }}{{ $model := .model }}
{{- $gpus := dict "nvidia.com/gpu" (toString $model.gpus) }}
{{- $requests := merge (deepCopy $gpus) $model.resources.requests }}
{{- if regexMatch "^(hf|s3)://" $model.uri }}{{ $_ := set $requests "ephemeral-storage" $model.weightsSize }}{{ end }}{{/* downloaded into the pod */}}
{{- $resources := dict "requests" $requests "limits" (merge (deepCopy $gpus) $model.resources.limits) }}
apiVersion: {{ include "zelda.llmApi" .root }}
kind: LLMInferenceService
metadata:
  name: {{ include "zelda.modelObject" (dict "root" .root "name" $model.name) }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "zelda.labels" (dict "root" .root "component" "llm") | nindent 4 }}
  annotations:
    security.opendatahub.io/enable-auth: {{ .root.Values.llm.auth | quote }}
spec:
  model: {uri: {{ $model.uri | quote }}, name: {{ $model.model | quote }}}
  replicas: {{ $model.replicas }}
  {{- with .root.Values.tracing.modelsEndpoint }}
  # Of a request that belongs to a trace; requests from elsewhere begin none.
  tracing: {exporterEndpoint: {{ . | quote }}, sampler: parentbased_traceidratio, samplerArg: "0"}
  {{- end }}
  {{- if gt (int $model.gpus) 1 }}
  parallelism: {tensor: {{ $model.gpus }}}
  {{- end }}
  router:
    gateway: {}
    route: {}
    scheduler: {{ if and $modern $model.imagesPerPrompt (eq .root.Values.platform.odhVersion "3.5") }}{{ include "zelda.imageScheduler" . | nindent 6 }}{{ else }}{}{{ end }}
  template:
    {{- with .root.Values.platform.priorityClass }}
    priorityClassName: {{ . }}
    {{- end }}
    {{- include "zelda.placement" $model | nindent 4 }}
    {{- if .root.Values.llm.tokenSecret }}
    serviceAccountName: {{ include "zelda.fullname" .root }}-models # its Secret has the token for downloads
    {{- end }}
    containers:
      - name: main
        {{- if $modern }}
        args: {{ include "zelda.llmArgs" $model }}
        {{- else }}
        env:
          - {name: VLLM_ADDITIONAL_ARGS, value: {{ include "zelda.llmArgs" $model | fromJsonArray | join " " | quote }}}
        {{- end }}
        startupProbe:
          httpGet: {path: /health, port: 8000, scheme: HTTPS}
          periodSeconds: 10
          failureThreshold: {{ mul $model.startupMinutes 6 }}
        resources: {{- toYaml $resources | nindent 10 }}
{{- end }}

{{/* votes on one segment repeat its frames: prefer the pod that has already encoded them (router 0.9 and later) */}}
{{- define "zelda.imageScheduler" -}}
config:
  inline:
    apiVersion: llm-d.ai/v1alpha1
    kind: EndpointPickerConfig
    plugins:
      - {type: single-profile-handler}
      - {type: queue-scorer}
      - {type: kv-cache-utilization-scorer}
      - {type: prefix-cache-scorer}
      - {type: mm-embeddings-cache-producer}
      - {type: mm-embeddings-cache-scorer}
      - {type: max-score-picker}
    schedulingProfiles:
      - name: default
        plugins:
          - {pluginRef: queue-scorer, weight: 2}
          - {pluginRef: kv-cache-utilization-scorer, weight: 2}
          - {pluginRef: prefix-cache-scorer, weight: 3}
          - {pluginRef: mm-embeddings-cache-scorer, weight: 2}
          - {pluginRef: max-score-picker}
{{- end }}
