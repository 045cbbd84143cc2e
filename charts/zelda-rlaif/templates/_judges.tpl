{{/* The judges' file: three judges with a route each, so that a slow model never delays another. */}}
{{- define "zelda.judgesFile" -}}
{{- $judges := .Values.judges }}
{{- $asks := dict "state" "[progress, dialog, efficiency]" "puzzle" "[puzzle]" "vision" "[novelty], frames: 8, frame_scale: 3" }}
rubric: default
routes:
  {{- range $name := list "state" "puzzle" "vision" }}
  {{ $name }}:
    {{- include "zelda.route" (dict "root" $ "name" $name) | nindent 4 }}
    total_timeout_s: {{ $judges.timeoutSeconds }}
    max_concurrent: {{ $judges.concurrency }}
  {{- end }}
judges:
  {{- range $name := list "state" "puzzle" "vision" }}
  - {name: {{ $name }}, route: {{ $name }}, model: {{ include "zelda.modelName" (dict "root" $ "name" $name) | quote }}, votes: {{ toJson $judges.votes }}, dimensions: {{ get $asks $name }}}
  {{- end }}
{{- end }}

{{- define "zelda.modelName" -}}
{{- $mode := .root.Values.judges.mode }}
{{- if eq $mode "rules" }}rules
{{- else if eq $mode "llmd" }}{{ (index .root.Values.llm.models .name).model }}
{{- else }}{{ required (printf "judges.external.routes.%s.model is needed" .name) (index .root.Values.judges.external.routes .name).model }}{{ end }}
{{- end }}

{{/* dict root name -> address, trust and identity of one route */}}
{{- define "zelda.route" -}}
{{- $judges := .root.Values.judges }}{{ $namespace := .root.Release.Namespace }}
{{- if eq $judges.mode "rules" -}}
url: http://{{ include "zelda.fullname" .root }}-rules-judge.{{ $namespace }}.svc:8080/v1
{{- else if eq $judges.mode "llmd" -}}
{{- $model := index .root.Values.llm.models .name -}}
url: {{ .root.Values.llm.gatewayUrl }}/{{ $namespace }}/{{ $model.name }}/v1
direct_url: https://{{ $model.name }}-kserve-workload-svc.{{ $namespace }}.svc.cluster.local:8000/v1
objective: {{ $namespace }}-{{ .name }}
{{- if .root.Values.llm.auth }}
token_file: /var/run/zelda/judge-token/token
{{- end }}
ca_file: /var/run/zelda/judge-ca/ca.crt
{{- else -}}
url: {{ required (printf "judges.external.routes.%s.baseUrl is needed" .name) (index $judges.external.routes .name).baseUrl }}
{{- if $judges.external.apiKeySecret }}
token_file: /var/run/zelda/judge-token/token
{{- end }}
{{- if include "zelda.judgeCa" .root }}
ca_file: /var/run/zelda/judge-ca/ca.crt
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
- {name: ZELDA_JUDGES_FILE, value: /etc/zelda/judges.yaml}
- {name: ZELDA_JUDGE__USE_DIRECT, value: {{ not .Values.llm.useGateway | quote }}}
- {name: ZELDA_JUDGE__REPLICAS, value: {{ ternary .Values.services.judge.replicas .Values.services.judge.autoscaling.max (eq .Values.services.judge.autoscaling.mode "none") | quote }}}
- name: ZELDA_JUDGE__REPLICA
  valueFrom: {fieldRef: {fieldPath: metadata.name}}
{{- end }}

{{- define "zelda.mounts.judge" -}}
- {name: judges, mountPath: /etc/zelda, readOnly: true}
{{- if include "zelda.judgeCa" . }}
- {name: judge-ca, mountPath: /var/run/zelda/judge-ca, readOnly: true}
{{- end }}
{{- if include "zelda.judgeToken" . }}
- {name: judge-token, mountPath: /var/run/zelda/judge-token, readOnly: true}
{{- end }}
{{- end }}

{{- define "zelda.volumes.judge" -}}
- name: judges
  configMap: {name: {{ include "zelda.fullname" . }}-judges}
{{- if include "zelda.judgeCa" . }}
- {{ include "zelda.caVolume" (dict "name" "judge-ca" "ca" (ternary .Values.judges.ca .Values.judges.external.ca (eq .Values.judges.mode "llmd"))) }}
{{- end }}
{{- if include "zelda.judgeToken" . }}
{{- if eq .Values.judges.mode "llmd" }}
- {{- include "zelda.accountToken" (dict "name" "judge-token" "audience" .Values.judges.tokenAudience) | nindent 2 }}
{{- else }}
- name: judge-token
  secret: {secretName: {{ .Values.judges.external.apiKeySecret }}, items: [{key: api-key, path: token}]}
{{- end }}
{{- end }}
{{- end }}
