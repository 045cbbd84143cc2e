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
{{- $resources := dict "requests" (merge (deepCopy $gpus) $model.resources.requests) "limits" (merge (deepCopy $gpus) $model.resources.limits) }}
apiVersion: {{ include "zelda.llmApi" .root }}
kind: LLMInferenceService
metadata:
  name: {{ $model.name }}
  namespace: {{ .root.Release.Namespace }}
  labels: {{- include "zelda.labels" (dict "root" .root "component" "llm") | nindent 4 }}
  annotations:
    security.opendatahub.io/enable-auth: {{ .root.Values.llm.auth | quote }}
spec:
  model: {uri: {{ $model.uri | quote }}, name: {{ $model.model | quote }}}
  replicas: {{ $model.replicas }}
  {{- if gt (int $model.gpus) 1 }}
  parallelism: {tensor: {{ $model.gpus }}}
  {{- end }}
  router:
    gateway: {}
    route: {}
    scheduler: {{ if and $modern $model.imagesPerPrompt (eq .root.Values.platform.odhVersion "3.5") }}{{ include "zelda.imageScheduler" . | nindent 6 }}{{ else }}{}{{ end }}
  template:
    {{- include "zelda.placement" $model | nindent 4 }}
    containers:
      - name: main
        {{- if $modern }}
        args: {{ include "zelda.llmArgs" $model }}
        {{- end }}
        {{- if or (not $modern) .root.Values.llm.tokenSecret }}
        env:
          {{- if not $modern }}
          - {name: VLLM_ADDITIONAL_ARGS, value: {{ include "zelda.llmArgs" $model | fromJsonArray | join " " | quote }}}
          {{- end }}
          {{- with .root.Values.llm.tokenSecret }}
          - {name: HF_TOKEN, valueFrom: {secretKeyRef: {name: {{ . }}, key: HF_TOKEN}}}
          {{- end }}
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
