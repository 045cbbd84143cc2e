{{/* The judges' file. Every judge has a route of its own by default, so that a slow model never delays another. */}}
{{- define "zelda.judgesFile" -}}
{{- $judges := .Values.judges }}
{{- $routes := list }}{{ range $judges.judges }}{{ $routes = append $routes .route }}{{ end }}
rubric: default
{{- with $judges.weights }}
weights: {{ toJson . }}
{{- end }}
routes:
  {{- range $name := $routes | uniq | sortAlpha }}
  {{ $name | quote }}:
    {{- include "zelda.route" (dict "root" $ "name" $name) | nindent 4 }}
    total_timeout_s: {{ $judges.timeoutSeconds }}
    max_concurrent: {{ $judges.concurrency }}
  {{- end }}
judges:
  {{- range $judges.judges }}
  - name: {{ .name | quote }}
    route: {{ .route | quote }}
    model: {{ include "zelda.modelName" (dict "root" $ "name" .route) | quote }}
    dimensions: {{ toJson .dimensions }}
    votes: {{ .votes | default $judges.votes | toJson }}
    {{- with .frames }}
    frames: {{ . }}
    {{- end }}
    {{- with .frameScale }}
    frame_scale: {{ . }}
    {{- end }}
    {{- with .temperature }}
    temperature: {{ . }}
    {{- end }}
    {{- with .asking }}
    asking: {{ . }}
    {{- end }}
    {{- with .facts }}
    facts: {{ . }}
    {{- end }}
    {{- with .examples }}
    examples: {{ . }}
    {{- end }}
    {{- with .spreadScale }}
    spread_scale: {{ . }}
    {{- end }}
    {{- with .maxPromptTokens }}
    max_prompt_tokens: {{ int64 . }}
    {{- end }}
    {{- with .maxOutputTokens }}
    max_output_tokens: {{ . }}
    {{- end }}
    {{- with .prices }}
    prices: {{ toJson . }}
    {{- end }}
  {{- end }}
{{- end }}

{{- define "zelda.modelName" -}}
{{- $mode := .root.Values.judges.mode }}
{{- if eq $mode "rules" }}rules
{{- else if eq $mode "llmd" }}{{ (include "zelda.model" (dict "root" .root "route" .name) | fromJson).model }}
{{- else }}{{ required (printf "judges.external.routes.%s.model is needed: name the model on the server" .name) (index .root.Values.judges.external.routes .name | default dict).model }}{{ end }}
{{- end }}

{{/* dict root name [caller] -> address, trust and identity of one route; its caller is judge or planner */}}
{{- define "zelda.route" -}}
{{- $judges := .root.Values.judges }}{{ $namespace := .root.Release.Namespace }}
{{- $caller := .caller | default "judge" }}
{{- if eq $judges.mode "rules" -}}
url: http://{{ include "zelda.fullname" .root }}-rules-judge.{{ $namespace }}.svc:8080/v1
{{- else if eq $judges.mode "llmd" -}}
{{- $llm := .root.Values.llm }}
{{- $object := include "zelda.modelObject" (dict "root" .root "name" (include "zelda.model" (dict "root" .root "route" .name) | fromJson).name) -}}
{{- $there := include "zelda.modelNamespace" .root -}}
{{- $gateway := printf "%s/%s/%s/v1" $llm.gatewayUrl $there $object }}
{{- $direct := printf "https://%s-kserve-workload-svc.%s.svc.cluster.local:8000/v1" $object $there }}
{{- $objective := ternary (printf "%s-%s" (include "zelda.fullname" .root) .name) $llm.shared.objective $llm.enabled }}
{{- if eq $caller "planner" }}
{{- $objective = ternary (printf "%s-%s-planner" (include "zelda.fullname" .root) .name) $llm.shared.plannerObjective $llm.enabled -}}
url: {{ ternary $gateway $direct $llm.useGateway }}
{{- else -}}
url: {{ $gateway }}
direct_url: {{ $direct }}
{{- end }}
{{- with $objective }}
objective: {{ . }}
{{- end }}
{{- if $llm.auth }}
token_file: /var/run/zelda/{{ $caller }}-token/token
{{- end }}
ca_file: /var/run/zelda/{{ $caller }}-ca/ca.crt
{{- else -}}
url: {{ required (printf "judges.external.routes.%s.baseUrl is needed: give the endpoint's address" .name) (index $judges.external.routes .name | default dict).baseUrl }}
{{- with $judges.external.proxy }}
proxy: {{ . }}
{{- end }}
{{- if $judges.external.apiKeySecret }}
token_file: /var/run/zelda/{{ $caller }}-token/token
{{- end }}
{{- if include "zelda.judgeCa" .root }}
ca_file: /var/run/zelda/{{ $caller }}-ca/ca.crt
{{- end }}
{{- end }}
{{- end }}

{{/* "true" if endpoints need a CA file: always inside the platform, outside if the values name one */}}
{{- define "zelda.judgeCa" -}}
{{- if or (eq .Values.judges.mode "llmd") (and (eq .Values.judges.mode "external") .Values.judges.external.ca.name) }}true{{ end }}
{{- end }}

{{- define "zelda.judgeToken" -}}
{{- if or (and (eq .Values.judges.mode "llmd") .Values.llm.auth) (and (eq .Values.judges.mode "external") .Values.judges.external.apiKeySecret) }}true{{ end }}
{{- end }}

{{- define "zelda.env.judge" -}}
{{ include "zelda.judgingEnv" . }}
- {name: ZELDA_JUDGE__REPLICAS, value: {{ ternary .Values.services.judge.replicas .Values.services.judge.autoscaling.max (eq .Values.services.judge.autoscaling.mode "none") | quote }}}
{{- end }}

{{/* settings of whoever judges: the judge's pods, and a job, which has a budget of its own */}}
{{- define "zelda.judgingEnv" -}}
- {name: ZELDA_JUDGES_FILE, value: /etc/zelda/judges.yaml}
{{- if .Values.judges.phases }}
- {name: ZELDA_JUDGE__PHASES_FILE, value: /etc/zelda/phases.yaml}
{{- end }}
{{- range $what, $limit := .Values.judges.budget }}{{ if $limit }}
- {name: ZELDA_JUDGE__BUDGET_{{ upper $what }}, value: {{ $limit | toJson | quote }}}
{{- end }}{{ end }}
- {name: ZELDA_JUDGE__USE_DIRECT, value: {{ not .Values.llm.useGateway | quote }}}
- name: ZELDA_JUDGE__REPLICA
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- end }}

{{- define "zelda.mounts.judge" -}}
- {name: judges, mountPath: /etc/zelda, readOnly: true}
{{- include "zelda.modelMounts" (dict "root" . "caller" "judge") }}
{{- end }}

{{- define "zelda.volumes.judge" -}}
- name: judges
  configMap: {name: {{ include "zelda.fullname" . }}-judges}
{{- include "zelda.modelVolumes" (dict "root" . "caller" "judge") }}
{{- end }}

{{/* dict root caller -> mounts of what a caller of models needs: their authority, and its token */}}
{{- define "zelda.modelMounts" -}}
{{- if include "zelda.judgeCa" .root }}
- {name: {{ .caller }}-ca, mountPath: /var/run/zelda/{{ .caller }}-ca, readOnly: true}
{{- end }}
{{- if include "zelda.judgeToken" .root }}
- {name: {{ .caller }}-token, mountPath: /var/run/zelda/{{ .caller }}-token, readOnly: true}
{{- end }}
{{- end }}

{{/* dict root caller -> volumes of these mounts */}}
{{- define "zelda.modelVolumes" -}}
{{- $judges := .root.Values.judges }}
{{- if include "zelda.judgeCa" .root }}
- {{ include "zelda.caVolume" (dict "name" (printf "%s-ca" .caller) "ca" (ternary $judges.ca $judges.external.ca (eq $judges.mode "llmd"))) }}
{{- end }}
{{- if include "zelda.judgeToken" .root }}
{{- if eq $judges.mode "llmd" }}
- {{- include "zelda.accountToken" (dict "name" (printf "%s-token" .caller) "audience" $judges.tokenAudience) | nindent 2 }}
{{- else }}
- name: {{ .caller }}-token
  secret: {secretName: {{ $judges.external.apiKeySecret }}, items: [{key: api-key, path: token}]}
{{- end }}
{{- end }}
{{- end }}
